import type { SettledStatus } from "./types.js";

/** Where a run stands in its host. `refused` runs were never in the log. */
export type RunLife =
  | { readonly is: "claiming" }
  | { readonly is: "running" }
  /** Its end was asked for; the agent has until its grace runs out. */
  | { readonly is: "stopping" }
  /** The agent is heard no more; the end is being written. */
  | { readonly is: "settling"; readonly status: SettledStatus }
  | { readonly is: "settled"; readonly status: SettledStatus }
  | { readonly is: "refused" }
  /** Another host took it over, or the log cannot be written. */
  | { readonly is: "lost" };

export type RunTransition =
  | { readonly to: "claimed" }
  | { readonly to: "refuse" }
  | { readonly to: "stop" }
  | { readonly to: "settle"; readonly status: SettledStatus }
  /** A stop request reached the log before the end that was being written. */
  | { readonly to: "decide"; readonly status: SettledStatus }
  | { readonly to: "settled" }
  | { readonly to: "lose" };

/** The life after `transition`; undefined where the transition does not apply, and nothing must happen. */
export function nextLife(life: RunLife, transition: RunTransition): RunLife | undefined {
  switch (transition.to) {
    case "claimed":
      return life.is === "claiming" ? { is: "running" } : undefined;
    case "refuse":
      return life.is === "claiming" ? { is: "refused" } : undefined;
    case "stop":
      return life.is === "running" ? { is: "stopping" } : undefined;
    case "settle":
      return life.is === "running" || life.is === "stopping"
        ? { is: "settling", status: transition.status }
        : undefined;
    case "decide":
      return life.is === "settling" ? { is: "settling", status: transition.status } : undefined;
    case "settled":
      return life.is === "settling" ? { is: "settled", status: life.status } : undefined;
    case "lose":
      return life.is === "running" || life.is === "stopping" || life.is === "settling" ? { is: "lost" } : undefined;
  }
}

/** The agent is still heard. */
export const isListening = (life: RunLife): boolean => life.is === "running" || life.is === "stopping";

/** A second run of the thread is refused; while it is settling the second run waits instead. */
export const isBusy = (life: RunLife): boolean => life.is === "claiming" || isListening(life);
