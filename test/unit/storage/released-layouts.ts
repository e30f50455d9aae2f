import type { IDBPDatabase, IDBPTransaction } from "idb";

/*
 * The layouts as they were released. They are written out here: what is released never changes.
 */

type Upgrade = IDBPTransaction<unknown, string[], "versionchange">;

export function createVersion1(db: IDBPDatabase): void {
  db.createObjectStore("heads", { keyPath: "threadId" }).createIndex("holder", "holder");
  const threads = db.createObjectStore("threads", { keyPath: "threadId" });
  threads.createIndex("updatedAt", ["archived", "updatedAt"]);
  threads.createIndex("agentId", ["agentId", "archived", "updatedAt"]);
  const runs = db.createObjectStore("runs", { keyPath: ["threadId", "runIndex"] });
  runs.createIndex("runId", ["threadId", "runId"], { unique: true });
  db.createObjectStore("chunks", { keyPath: ["threadId", "runIndex", "firstSeq"] });
  const messages = db.createObjectStore("messages", { keyPath: ["threadId", "runIndex", "n"] });
  messages.createIndex("messageId", ["threadId", "messageId"]);
  db.createObjectStore("states", { keyPath: ["threadId", "runIndex"] });
  db.createObjectStore("meta");
  db.createObjectStore("search");
}

export function createVersion2(db: IDBPDatabase, tx: Upgrade): void {
  createVersion1(db);
  tx.objectStore("runs").createIndex("id", "runId");
}

export function createVersion3(db: IDBPDatabase, tx: Upgrade): void {
  createVersion2(db, tx);
  const messages = tx.objectStore("messages");
  messages.createIndex("after", ["threadId", "after"]);
  messages.createIndex("resets", ["threadId", "resets", "runIndex"]);
}

export function createVersion4(db: IDBPDatabase, tx: Upgrade): void {
  createVersion3(db, tx);
  const waiting = db.createObjectStore("waiting", { keyPath: ["threadId", "position"] });
  waiting.createIndex("runId", ["threadId", "runId"], { unique: true });
}
