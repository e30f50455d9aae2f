/** Messages on the screen, the answer included. */
export const MESSAGES = 200;

/** What each delta says. */
export const WORD = "word ";

/** What the page asks the agent for. */
export interface Order {
  /** Number of deltas. */
  readonly n: number;
  /** Deltas a second. */
  readonly rate: number;
}

/** What a page's components did during a run. */
export interface Renders {
  /** Renders of the component that has the hook, each of them a commit. */
  readonly list: number;
  /** Renders of single messages, over all of them. */
  readonly messages: number;
}
