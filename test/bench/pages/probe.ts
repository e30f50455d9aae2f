import { stamp, type Commit, type Probe } from "./stamps.js";

const zero = {
  appends: 0,
  settles: 0,
  putMs: 0,
  appendMs: 0,
  settleMs: 0,
  frames: 0,
  postMs: 0,
};

/** Times storage and ports of this context from outside; what it costs itself is two clock readings a call. */
export function installProbe(): { take(): Probe; commits(): readonly Commit[] } {
  let counted = { ...zero };
  let commits: Commit[] = [];
  /** What a transaction puts: one chunk at most. */
  const chunks = new WeakMap<IDBTransaction, Omit<Commit, "at">>();

  const { transaction } = IDBDatabase.prototype;
  IDBDatabase.prototype.transaction = function (this: IDBDatabase, stores, mode, options) {
    const begun = performance.now();
    const tx = transaction.call(this, stores, mode, options);
    if (mode === "readwrite" && tx.objectStoreNames.contains("chunks")) {
      const append = tx.objectStoreNames.length === 2;
      // Heard before whoever asked for the transaction, and hands its chunk out then, hears it.
      tx.addEventListener("complete", () => {
        const ms = performance.now() - begun;
        const chunk = chunks.get(tx);
        if (chunk !== undefined) commits.push({ ...chunk, at: stamp() });
        if (append) counted = { ...counted, appends: counted.appends + 1, appendMs: counted.appendMs + ms };
        else counted = { ...counted, settles: counted.settles + 1, settleMs: counted.settleMs + ms };
      });
    }
    return tx;
  };

  const { put } = IDBObjectStore.prototype;
  IDBObjectStore.prototype.put = function (this: IDBObjectStore, ...args) {
    const begun = performance.now();
    if (this.name === "chunks") {
      const { threadId, firstSeq } = args[0] as { readonly threadId: string; readonly firstSeq: number };
      chunks.set(this.transaction, { threadId, firstSeq });
    }
    try {
      return put.apply(this, args);
    } finally {
      counted.putMs += performance.now() - begun;
    }
  };

  const post = MessagePort.prototype.postMessage as (this: MessagePort, ...args: unknown[]) => void;
  MessagePort.prototype.postMessage = function (this: MessagePort, ...args: unknown[]) {
    if ((args[0] as { type?: unknown } | null)?.type !== "chunk") return post.apply(this, args);
    const begun = performance.now();
    post.apply(this, args);
    counted.postMs += performance.now() - begun;
    counted.frames++;
  };

  return {
    take() {
      const taken = counted;
      counted = { ...zero };
      return taken;
    },
    commits() {
      const taken = commits;
      commits = [];
      return taken;
    },
  };
}
