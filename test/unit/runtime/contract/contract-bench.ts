import { EventType } from "@ag-ui/core";
import type { RunAgentInput } from "@ag-ui/client";
import { expectSame, expectThat, shown } from "../../../../src/conformance/expect.js";
import { Patience } from "../../../../src/conformance/patience.js";
import { WAITS, type Progress, type Props } from "./contract-agents.js";
import { EventReader, type Read } from "./reading.js";
import type { WayIn } from "./way-in.js";

/** One thing that holds for each way into a runtime. */
export interface ContractCase {
  readonly name: string;
  /** `routes`: it asks for what no envelope can say. */
  readonly needs?: "routes";
  /**
   * Must not count on being alone with the runtime: cases run one after the other on one that others have used. Throws
   * where the runtime does anything else.
   */
  check(bench: ContractBench): Promise<void>;
}

/** What a run is asked for. */
export interface Asked {
  readonly threadId: string;
  readonly runId?: string;
  /** What the user says. Default: "hello". */
  readonly says?: string;
  readonly props?: Props;
  readonly input?: Partial<RunAgentInput> & { readonly lastSeenEventId?: unknown };
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export const PATIENCE_MS = 60_000;

/** What a case works with. */
export class ContractBench {
  readonly patience = new Patience(PATIENCE_MS);
  private static made = 0;

  constructor(readonly way: WayIn) {}

  /** An id that no other case uses. */
  id(kind: string): string {
    return `${kind}-${++ContractBench.made}-${Math.random().toString(36).slice(2, 8)}`;
  }

  get(path: string, init: RequestInit = {}): Promise<Response> {
    return this.way.request(path, { method: "GET", ...init });
  }

  post(path: string, body: unknown, init: RequestInit = {}): Promise<Response> {
    const headers = { "Content-Type": "application/json", ...(init.headers as Record<string, string> | undefined) };
    return this.way.request(path, {
      method: "POST",
      ...init,
      headers,
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  }

  /** POSTs an input to an agent. */
  ask(work: "run" | "connect" | "suggest", agentId: string, asked: Asked): Promise<Response> {
    const init = { headers: asked.headers ?? {}, ...(asked.signal !== undefined && { signal: asked.signal }) };
    return this.post(`/agent/${encodeURIComponent(agentId)}/${work}`, this.inputOf(asked), init);
  }

  inputOf({ threadId, runId = this.id("run"), says = "hello", props = {}, input }: Asked): object {
    const messages = [{ id: `${runId}-user`, role: "user", content: says }];
    return { threadId, runId, messages, state: {}, tools: [], context: [], forwardedProps: props, ...input };
  }

  async start(agentId: string, asked: Asked): Promise<EventReader> {
    return new EventReader(await this.ask("run", agentId, asked));
  }

  /** A whole run. */
  async run(agentId: string, asked: Asked): Promise<readonly Read[]> {
    return this.patience.within((await this.start(agentId, asked)).all(), `the end of a run of ${agentId}`);
  }

  async connect(threadId: string, asked: Partial<Asked> = {}): Promise<EventReader> {
    const input = { messages: [], ...asked.input };
    return new EventReader(await this.ask("connect", "echo", { ...asked, threadId, input }));
  }

  /** Everything that connect hands out of a thread that is not live. */
  async history(threadId: string, asked: Partial<Asked> = {}): Promise<readonly Read[]> {
    return this.patience.within((await this.connect(threadId, asked)).all(), "the end of a connect");
  }

  /** A run that is live, and waits for a gate of its own. */
  async hold(asked: Asked, agentId = "holder"): Promise<{ readonly reader: EventReader; letOn(): Promise<void> }> {
    const gate = this.id("gate");
    const reader = await this.start(agentId, { ...asked, props: { ...asked.props, gate } });
    await this.patience.within(reader.until(waits, "it waits"), "a run that waits");
    return { reader, letOn: () => this.open(gate) };
  }

  async open(gate: string): Promise<void> {
    await this.run("opener", { threadId: this.id("opening"), props: { gate } });
  }

  async progress(runId: string): Promise<Progress> {
    const told = await this.run("teller", { threadId: this.id("telling"), props: { of: runId } });
    const { event } = told.find((read) => read.event.type === EventType.STATE_SNAPSHOT)!;
    return (event["snapshot"] as { readonly is: Progress }).is; // what `teller` sends
  }

  stop(threadId: string, body?: unknown, agentId = "holder"): Promise<Response> {
    const path = `/agent/${encodeURIComponent(agentId)}/stop/${encodeURIComponent(threadId)}`;
    return body === undefined ? this.way.request(path, { method: "POST" }) : this.post(path, body);
  }

  /** Nothing of a thread is left over that would be in the way of its next run. */
  async expectFree(threadId: string): Promise<void> {
    const runId = this.id("next");
    const after = await this.run("echo", { threadId, runId });
    expectSame(after.at(-1)?.event.type, EventType.RUN_FINISHED, "a thread must take its next run");
  }

  async messages(threadId: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const answer = await this.get(`/threads/${encodeURIComponent(threadId)}/messages`);
    expectSame(answer.status, 200, "messages of a thread must be told");
    return ((await answer.json()) as { messages: Record<string, unknown>[] }).messages;
  }
}

export const waits = ({ event }: Read): boolean => event.type === EventType.CUSTOM && event["name"] === WAITS;

/** What no answer may tell: where the code is, and how it got there. */
const INSIDES = /\n\s+at |node_modules|\/src\/|\.[jt]s:\d|file:\/\//;

/** What the runtime says no with: JSON that tells nobody what is inside. */
export async function refusalOf(response: Response): Promise<Readonly<Record<string, unknown>>> {
  const { status } = response;
  const text = await response.text();
  const type = response.headers.get("Content-Type");
  expectThat(
    type?.startsWith("application/json") === true,
    "an error must be JSON",
    `${status} ${String(type)} ${text}`,
  );
  expectThat(!INSIDES.test(text), "an error must not tell of the code", text);
  const body: unknown = JSON.parse(text);
  const isObject = typeof body === "object" && body !== null;
  expectThat(isObject && "error" in body && typeof body.error === "string", "an error must name itself", text);
  return body as Readonly<Record<string, unknown>>;
}

/** @param body fields that it must have at least */
export async function expectRefusal(
  response: Response,
  status: number,
  body: Readonly<Record<string, unknown>> = {},
): Promise<Readonly<Record<string, unknown>>> {
  const said = await refusalOf(response);
  expectSame(response.status, status, `must be refused, saying ${shown(body)}; it said ${shown(said)}`);
  const fields = Object.fromEntries(Object.keys(body).map((field) => [field, said[field]]));
  expectSame(fields, body, "a refusal must say what CopilotKit's does");
  return said;
}

/** @returns the JSON */
export async function expectJson(response: Response, status = 200): Promise<unknown> {
  const text = await response.text();
  expectSame(response.status, status, `must answer; it said ${text}`);
  const type = response.headers.get("Content-Type");
  expectThat(type?.startsWith("application/json") === true, "must answer with JSON", String(type));
  return JSON.parse(text);
}
