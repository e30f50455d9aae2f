import { IDBFactory } from "fake-indexeddb";

// Files that share a process have databases of their own.
globalThis.indexedDB = new IDBFactory();
