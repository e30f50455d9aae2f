import { piecesOf as bodyOf, type Script, type ScriptedAnswer, type SeenRequest } from "../../openai/server.js";
import { pick } from "../hammer-random.js";
import { callId, piecesOf, planIn, textOf, type Plan } from "./plan.js";

interface Told {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly unknown[];
}

/** Where the conversation stands, as the model is told it. */
interface Place {
  readonly plan: Plan;
  readonly step: number;
  /** The part of the step's text that it is asked to go on from. */
  readonly said: string;
}

const contentOf = ({ content }: Told): string =>
  typeof content === "string"
    ? content
    : Array.isArray(content)
      ? (content as { text?: string }[]).map(({ text = "" }) => text).join("") // parts of a text
      : "";

/** @throws Error where no plan was asked for */
function placeIn({ body }: SeenRequest): Place {
  const messages = body["messages"] as readonly Told[]; // as OpenAI's clients write it
  const at = messages.findLastIndex((message) => message.role === "user" && planIn(contentOf(message)) !== undefined);
  const plan = at < 0 ? undefined : planIn(contentOf(messages[at]!));
  if (plan === undefined) throw new Error("no message of the conversation has a plan");
  const since = messages.slice(at + 1);
  const answered = (message: Told): boolean => message.role === "assistant" && (message.tool_calls?.length ?? 0) > 0;
  const said = since.slice(since.findLastIndex(answered) + 1).filter(({ role }) => role === "assistant");
  return { plan, step: since.filter(answered).length, said: said.map(contentOf).join("") };
}

/** Faults of a server, each with its weight. */
const FAULTS = [
  ["none", 14],
  ["rate limit", 2],
  ["server error", 2],
  ["cut", 3],
  ["stall", 1],
  ["malformed", 1],
] as const;
const KINDS = FAULTS.flatMap(([kind, weight]) => Array.from({ length: weight }, () => kind));

const refusal = (status: number, headers: Record<string, string> = {}): ScriptedAnswer => ({
  status,
  headers,
  body: JSON.stringify({ error: { message: "as scripted", type: "scripted", code: null } }),
});

/** A model that follows the plan of the last message, on a server with faults. */
export class PlannedModel {
  /** No faults. */
  isCalm = false;
  /** No answer reaches anyone. */
  isDown = false;
  /** What it must never be asked, a sentence each. */
  readonly complaints: string[] = [];
  /** How often each fault came. */
  readonly faults: Record<string, number> = {};

  constructor(private readonly random: () => number) {}

  readonly script: Script = (request, n) => {
    const answer = this.answerTo(placeIn(request), n);
    return this.isDown ? { ...answer, cutAfter: 0 } : this.isCalm ? answer : this.faulty(answer);
  };

  private answerTo({ plan, step, said }: Place, n: number): ScriptedAnswer {
    const now = plan.steps[step];
    if (now === undefined) {
      this.complaints.push(`${plan.id}: asked for step ${step} of ${plan.steps.length}`);
      return { text: ["?"] };
    }
    if (!textOf(plan, step).startsWith(said)) {
      this.complaints.push(`${plan.id}: step ${step} is to go on from "${said}", which it never said`);
    }
    const text: string[] = [];
    let skip = said.length;
    for (const piece of piecesOf(plan, step)) {
      if (skip < piece.length) text.push(piece.slice(skip));
      skip = Math.max(0, skip - piece.length);
    }
    const calls = now.calls.map((name, index) => ({
      id: callId({ message: plan.id, step, name, index }, n),
      name,
      args: ['{"what":', ` "${plan.id}"`, "}"],
    }));
    return { text, calls, delayMs: Math.floor(this.random() * 6) };
  }

  private faulty(answer: ScriptedAnswer): ScriptedAnswer {
    const kind = pick(this.random, KINDS);
    this.faults[kind] = (this.faults[kind] ?? 0) + 1;
    switch (kind) {
      case "rate limit":
        return refusal(429, { "retry-after": "0" });
      case "server error":
        return refusal(pick(this.random, [500, 502, 503]));
      case "cut":
        return { ...answer, cutAfter: Math.floor(this.random() * bodyOf(answer).join("").length) };
      case "stall":
        return { ...answer, holds: true };
      case "malformed":
        return { ...answer, raw: "data: {not json\n\n" };
      case "none":
        return answer;
    }
  }
}
