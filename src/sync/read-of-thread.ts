import { runKey } from "./run-key.js";
import { namedRun, runName } from "./run-name.js";
import type { EndMessage, RunMessage, SpaceMessage } from "./messages.js";
import type { Outcome, ThreadState } from "./thread-state.js";

/** What was read of a thread since its first entry, or since this host began: what its state does not say. */
export class ReadOfThread {
  /** Own runs that the space has whole (see {@link runKey}), but for those that a record says were sent. */
  readonly whole = new Set<string>();
  /**
   * The names of the thread's runs since its deletion, all of them begun by who knew of that; undefined: it was not deleted,
   * or somebody has added to it unseen.
   */
  anew: ReadonlySet<string> | undefined;
  /** By name: when it was deleted, how many events had come of the runs whose end had not. */
  open: ReadonlyMap<string, number> = new Map();
  /** By name: when the own runs began whose end was not read. */
  private readonly begun = new Map<string, number>();

  /** An entry, whoever added it. @param before the thread before it */
  take(message: SpaceMessage, before: ThreadState, outcome: Outcome): void {
    if (outcome === "deleted") {
      this.anew = new Set();
      this.open = new Map(Object.entries(before.open).map(([name, { nextSeq }]) => [name, nextSeq]));
    }
    if (message.type !== "run" || outcome === "nothing") return;
    // Nobody has it whole until its device has sent it.
    this.whole.delete(runKey(message));
    const { anew } = this;
    const { prev } = message;
    const name = runName(message);
    if (anew !== undefined) this.anew = prev === null || anew.has(prev) ? new Set([...anew, name]) : undefined;
  }

  ownBegins(message: RunMessage): void {
    this.begun.set(runName(message), message.startedAt);
  }

  ownEnds({ runId: name }: EndMessage): void {
    const startedAt = this.begun.get(name);
    this.begun.delete(name);
    if (startedAt !== undefined) this.whole.add(runKey({ startedAt, runId: namedRun(name).runId }));
  }

  /** It is read again. */
  clear(): void {
    this.whole.clear();
    this.begun.clear();
    this.anew = undefined;
    this.open = new Map();
  }
}
