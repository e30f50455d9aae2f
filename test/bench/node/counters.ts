import { createHook } from "node:async_hooks";
import type { Frame } from "../../../src/wire/shapes.js";

/** What this process has made so far. */
export interface Counts {
  readonly promises: number;
  readonly transactions: number;
  /** Posted to ports, one for each port that is posted to. */
  readonly chunks: number;
}

/** Counts from now on, for the rest of the process. Patches the globals, so nothing of the runtime knows of it. */
export function startCounting(): () => Counts {
  let promises = 0;
  let transactions = 0;
  let chunks = 0;
  createHook({
    init(_, type) {
      if (type === "PROMISE") promises++;
    },
  }).enable();
  const { transaction } = IDBDatabase.prototype;
  IDBDatabase.prototype.transaction = function (...given) {
    transactions++;
    return transaction.apply(this, given);
  };
  const { postMessage } = MessagePort.prototype;
  MessagePort.prototype.postMessage = function (this: MessagePort, message: Frame | null, ...rest: unknown[]) {
    if (message?.type === "chunk") chunks++;
    // Node's BroadcastChannel posts through it as well, and needs what it returns.
    return Reflect.apply(postMessage, this, [message, ...rest]) as void;
  };
  return () => ({ promises, transactions, chunks });
}
