import type { SettledStatus } from "./types.js";

/** What a run that was asked to end will have ended as, unless its agent ends it first. */
export type AskedStatus = "stopped" | "superseded" | "errored" | "broken";

/** Where a run stands in its host. `refused`: this host does not execute it. */
export type RunLife =
  /** It waits for the thread's runs before it. */
  | { readonly is: "queued" }
  | { readonly is: "claiming" }
  | { readonly is: "running" }
  /**
   * Its end was asked for; the agent has until its grace runs out. `errored`: it passed its time limit; `broken`: its host
   * has to end.
   */
  | { readonly is: "stopping"; readonly as: AskedStatus }
  /** The agent is heard no more; the end is being written. */
  | { readonly is: "settling"; readonly status: SettledStatus }
  | { readonly is: "settled"; readonly status: SettledStatus }
  | { readonly is: "refused" }
  /** Another host took it over, or the log cannot be written. */
  | { readonly is: "lost" };

export type RunTransition =
  /** The thread has a live run: this one waits for its end. */
  | { readonly to: "wait" }
  /** The thread is free for it. */
  | { readonly to: "turn" }
  /** It stands in the log. */
  | { readonly to: "claimed" }
  | { readonly to: "refuse" }
  | { readonly to: "stop"; readonly as: AskedStatus }
  | { readonly to: "settle"; readonly status: SettledStatus }
  /** A stop request reached the log before the end that was being written. */
  | { readonly to: "decide"; readonly status: SettledStatus }
  | { readonly to: "settled" }
  | { readonly to: "lose" };

/** The life after `transition`; undefined where the transition does not apply, and nothing must happen. */
export function nextLife(life: RunLife, transition: RunTransition): RunLife | undefined {
  switch (transition.to) {
    case "wait":
      return life.is === "claiming" ? { is: "queued" } : undefined;
    case "turn":
      return life.is === "queued" ? { is: "claiming" } : undefined;
    case "claimed":
      return life.is === "claiming" ? { is: "running" } : undefined;
    case "refuse":
      return life.is === "queued" || life.is === "claiming" ? { is: "refused" } : undefined;
    case "stop":
      return life.is === "running" ? { is: "stopping", as: transition.as } : undefined;
    case "settle":
      return isListening(life) ? { is: "settling", status: transition.status } : undefined;
    case "decide":
      return life.is === "settling" ? { is: "settling", status: transition.status } : undefined;
    case "settled":
      return life.is === "settling" ? { is: "settled", status: life.status } : undefined;
    case "lose":
      return isListening(life) || life.is === "settling" ? { is: "lost" } : undefined;
  }
}

/** A life that goes on; it begins with the claim. */
export class Life {
  private life: RunLife = { is: "claiming" };

  get now(): RunLife {
    return this.life;
  }

  /** @returns false where the transition does not apply, and nothing must happen */
  go(transition: RunTransition): boolean {
    const next = nextLife(this.life, transition);
    if (next === undefined) return false;
    this.life = next;
    return true;
  }
}

/** The agent is still heard. */
export const isListening = (life: RunLife): boolean => life.is === "running" || life.is === "stopping";

/** A second run of the thread is refused; while it is settling the second run waits instead. */
export const isBusy = (life: RunLife): boolean => life.is === "queued" || life.is === "claiming" || isListening(life);
