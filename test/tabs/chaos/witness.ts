import { startReceiver } from "../driver/receiver.js";

/** What is posted to the witness. */
export type Deposition =
  /** A tool did what it does. */
  | { readonly is: "executed"; readonly toolCallId: string; readonly execution: string }
  /** A page was given a message to send: it does so now. */
  | { readonly is: "typed"; readonly threadId: string; readonly messageId: string; readonly load: string }
  /** The page was told that the message is taken: from here on it must not be lost. */
  | { readonly is: "taken"; readonly messageId: string }
  /** The page was told that it is not. */
  | { readonly is: "refused"; readonly messageId: string; readonly code: string };

/** A message as the witness knows it; times are places in the order of all depositions. */
export interface Typed {
  readonly messageId: string;
  readonly threadId: string;
  /** Of the page. */
  readonly load: string;
  readonly at: number;
  takenAt?: number;
  refused?: string;
}

/** Knows outside of the browser what was done and promised in it. */
export interface Witness {
  readonly url: string;
  readonly typed: ReadonlyMap<string, Typed>;
  /** Executions of each tool call, by its id. */
  readonly executions: ReadonlyMap<string, ReadonlySet<string>>;
  /** The browser has lost its storage: what was promised before counts no more. */
  forget(): void;
  close(): Promise<void>;
}

export async function startWitness(): Promise<Witness> {
  const typed = new Map<string, Typed>();
  const executions = new Map<string, Set<string>>();
  let count = 0;
  const { url, close } = await startReceiver((posted) => {
    const said = posted as Deposition; // from the pages of this suite
    const at = count++;
    if (said.is === "executed") {
      const { toolCallId, execution } = said;
      executions.set(toolCallId, (executions.get(toolCallId) ?? new Set()).add(execution));
      return undefined;
    }
    const { messageId } = said;
    if (said.is === "typed") {
      const { threadId, load } = said;
      typed.set(messageId, { messageId, threadId, load, at });
      return undefined;
    }
    const of = typed.get(messageId);
    // Undefined: forgotten.
    if (of !== undefined && said.is === "taken") of.takenAt ??= at;
    if (of !== undefined && said.is === "refused") of.refused = said.code;
    return undefined;
  });
  return { url, close, typed, executions, forget: () => typed.clear() };
}
