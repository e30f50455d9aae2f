/*
 * What a message of the chaos suite asks for, and with it everything that its answer must be: a model that follows the
 * plan says and calls the same, however often it is asked.
 */

/** `look` may run twice for one call, `pay` must not. */
export type ToolName = "look" | "pay";

/** What the model does each time that it is asked for the message. */
export interface Step {
  /** It says so many numbers, */
  readonly words: number;
  /** then calls these tools. The last step of a plan has none. */
  readonly calls: readonly ToolName[];
}

/** The content of a user's message, as JSON. */
export interface Plan {
  /** The message's own id. */
  readonly id: string;
  readonly steps: readonly Step[];
}

/** Undefined for a message that is none. */
export function planIn(content: unknown): Plan | undefined {
  if (typeof content !== "string" || !content.startsWith('{"id":')) return undefined;
  return JSON.parse(content) as Plan; // written by `JSON.stringify` of a plan
}

/** The text of a step, in the pieces that the model writes. None ends with a space: providers may trim a text. */
export const piecesOf = (plan: Plan, step: number): string[] => [
  `[${plan.id}.${step}]`,
  ...Array.from({ length: plan.steps[step]?.words ?? 0 }, (_, n) => ` ${n}`),
];

export const textOf = (plan: Plan, step: number): string => piecesOf(plan, step).join("");

/** The whole text of the answer. */
export const answerOf = (plan: Plan): string => plan.steps.map((_, step) => textOf(plan, step)).join("");

/** What a tool call is for: the same each time that the model makes it. */
export interface CallPlace {
  readonly message: string;
  readonly step: number;
  readonly name: ToolName;
  /** Among the calls of the step. */
  readonly index: number;
}

/** @param n of the request that the call answers: no two calls have the same id */
export const callId = ({ message, step, name, index }: CallPlace, n: number): string =>
  [message, step, name, index, n].join(".");

export function placeOf(toolCallId: string): CallPlace & { readonly place: string } {
  const [message = "", step = "", name = "", index = ""] = toolCallId.split(".");
  const place = [message, step, name, index].join(".");
  return { message, step: Number(step), name: name as ToolName, index: Number(index), place }; // as `callId` wrote it
}

/** What a tool gives. */
export const resultOf = (toolCallId: string): string => `done ${toolCallId}`;

/** @param random numbers from 0 up to 1 */
export function randomPlan(id: string, random: () => number): Plan {
  const below = (n: number): number => Math.floor(random() * n);
  const names: readonly ToolName[] = ["look", "pay"];
  const tools = Array.from({ length: below(4) }, (): Step => ({
    words: below(8),
    calls: Array.from({ length: 1 + below(2) }, () => names[below(2)]!),
  }));
  return { id, steps: [...tools, { words: 3 + below(25), calls: [] }] };
}
