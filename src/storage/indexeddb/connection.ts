import type { IDBPTransaction } from "idb";
import type { DatabaseConnection } from "./database-connection.js";
import type { RuntimeSchema, Stores } from "./schema.js";

/** The log's. */
export type Connection = DatabaseConnection<RuntimeSchema>;
export type WriteTransaction = IDBPTransaction<RuntimeSchema, Stores[], "readwrite">;
export type ReadTransaction = IDBPTransaction<RuntimeSchema, Stores[], "readonly">;
