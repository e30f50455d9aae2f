import { checkInput } from "../../src/runner/checks.js";
import { parseRunInput } from "../../src/runtime/http/body.js";
import type { Context } from "./context.js";
import { figure, inTurn } from "./figures.js";

const BYTES = 4 * 1024 * 1024;

const input = { threadId: "t", runId: "r", messages: [], tools: [], context: [], state: {}, forwardedProps: {} };
const user = (content: unknown): object => ({ id: "m", role: "user", content });
const fill = (item: unknown): unknown[] =>
  Array.from({ length: Math.floor((BYTES - 300) / (JSON.stringify(item).length + 1)) }, () => item);
const fields = (): object => Object.fromEntries(Array.from({ length: 350_000 }, (_, at) => [`k${at}`, 0]));

/** Bodies of the limit's size; made one by one, because each holds hundreds of megabytes. */
const BODIES: Readonly<Record<string, () => object>> = {
  "zeros for messages": () => ({ ...input, messages: fill(0) }),
  "zeros for tools": () => ({ ...input, tools: fill(0) }),
  "{} for context": () => ({ ...input, context: fill({}) }),
  "zeros for parts": () => ({ ...input, messages: [user(fill(0))] }),
  "zeros for tool calls": () => ({ ...input, messages: [{ id: "m", role: "assistant", toolCalls: fill(0) }] }),
  "state of []": () => ({ ...input, state: fill([]) }),
  "state of fields": () => ({ ...input, state: fields() }),
  "fields beside those of AG-UI": () => ({ ...input, ...fields() }),
  "fields of a message": () => ({ ...input, messages: [{ ...user(""), ...fields() }] }),
  "one text": () => ({ ...input, messages: [user("x".repeat(BYTES - 300))] }),
  "valid messages of 300 characters": () => ({ ...input, messages: fill(user("x".repeat(300))) }),
  "valid empty messages": () => ({ ...input, messages: fill(user("")) }),
  "valid empty assistants": () => ({ ...input, messages: fill({ id: "", role: "assistant" }) }),
  "valid empty parts": () => ({ ...input, messages: [user(fill({ type: "text", text: "" }))] }),
  "valid messages of a part": () => ({ ...input, messages: fill(user([{ type: "text", text: "" }])) }),
  "valid empty tools": () => ({ ...input, tools: fill({ name: "", description: "" }) }),
  "valid resume entries": () => ({ ...input, resume: fill({ interruptId: "", status: "resolved" }) }),
};

/** What reading and checking a run's body of 4 MB costs, in Node, beside `JSON.parse` of it. The goal: at most 5 times. */
export async function bodies({ samples, figures }: Context): Promise<void> {
  const headers = { "content-type": "application/json" };
  for (const [name, make] of Object.entries(BODIES)) {
    const text = JSON.stringify(make());
    const taken = await inTurn(samples, {
      parse: timed(() => JSON.parse(text)),
      body: timed(() =>
        parseRunInput(new Request("http://localhost/", { method: "POST", headers, body: text }), 2 * BYTES),
      ),
      runner: timed(() => checkInput(JSON.parse(text))),
    });
    const group = "bodies: 4 MB, read and checked";
    const parse = figure(group, `${name}: JSON.parse`, "ms", taken.parse);
    figures.push(parse);
    for (const [what, values] of [
      ["over HTTP", taken.body],
      ["parsed, and checked by the runner", taken.runner],
    ] as const) {
      figures.push(
        figure(
          group,
          `${name}: ${what}`,
          "times",
          values.map((ms) => ms / parse.median),
        ),
      );
    }
  }
}

const timed = (work: () => unknown) => async (): Promise<number> => {
  const since = performance.now();
  // Most of them are refused.
  await Promise.resolve()
    .then(work)
    .catch(() => undefined);
  return performance.now() - since;
};
