import type { Probe } from "./stamps.js";

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
export function installProbe(): { take(): Probe } {
  let counted = { ...zero };

  const { transaction } = IDBDatabase.prototype;
  IDBDatabase.prototype.transaction = function (this: IDBDatabase, stores, mode, options) {
    const begun = performance.now();
    const tx = transaction.call(this, stores, mode, options);
    if (mode === "readwrite" && tx.objectStoreNames.contains("chunks")) {
      const append = tx.objectStoreNames.length === 2;
      tx.addEventListener("complete", () => {
        const ms = performance.now() - begun;
        if (append) counted = { ...counted, appends: counted.appends + 1, appendMs: counted.appendMs + ms };
        else counted = { ...counted, settles: counted.settles + 1, settleMs: counted.settleMs + ms };
      });
    }
    return tx;
  };

  const { put } = IDBObjectStore.prototype;
  IDBObjectStore.prototype.put = function (this: IDBObjectStore, ...args) {
    const begun = performance.now();
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
  };
}
