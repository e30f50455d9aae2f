import type { Figure } from "./figures.js";
import type { Lab } from "./lab.js";

/** What a group of figures works with. */
export interface Context {
  readonly lab: Lab;
  readonly quick: boolean;
  /** Repetitions after the warm-up. */
  readonly samples: number;
  /** Figures so far, to stand beside. */
  readonly figures: Figure[];
  /** CopilotKit's runtime to compare with; undefined where it is not installed. */
  readonly peer?: { readonly url: string; readonly version: string };
  /** Prints the figures that are new: for groups that take long. */
  show(): void;
  /** A line below the table. */
  note(line: string): void;
}
