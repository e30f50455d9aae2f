import { AbstractAgent, EventType, HttpAgent, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { AgentRuntime, createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { Observable } from "rxjs";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { agentOf, collect, inputOf, makeRunner } from "../runner/kit.js";
import { post } from "./http/kit.js";
import { serve } from "./node-kit.js";

const said = (runId: string): BaseEvent[] => [
  { type: EventType.TEXT_MESSAGE_START, messageId: `${runId}-a`, role: "assistant" },
  { type: EventType.TEXT_MESSAGE_CONTENT, messageId: `${runId}-a`, delta: "so far" },
];

/** A server that begins to answer and never ends. */
const unending = async (): Promise<string> => {
  const { url } = await serve((request, response) => {
    let body = "";
    request.on("data", (piece: Buffer) => (body += piece.toString()));
    request.on("end", () => {
      const { threadId, runId } = JSON.parse(body) as RunAgentInput;
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const event of [{ type: EventType.RUN_STARTED, threadId, runId }, ...said(runId)]) {
        response.write(`data: ${JSON.stringify(event)}\n\n`);
      }
    });
  });
  return url;
};

/** Answers with `fetch`, and fails with what that throws. */
class FetchAgent extends AbstractAgent {
  private aborting = new AbortController();
  constructor(private url: string) {
    super({});
  }
  override run(input: RunAgentInput): Observable<BaseEvent> {
    this.aborting = new AbortController();
    const { signal } = this.aborting;
    return new Observable((subscriber) => {
      const { threadId, runId } = input;
      for (const event of [{ type: EventType.RUN_STARTED, threadId, runId } as BaseEvent, ...said(runId)]) {
        subscriber.next(event);
      }
      fetch(this.url, { method: "POST", body: JSON.stringify(input), signal })
        .then((response) => response.text())
        .then(
          () => subscriber.complete(),
          (error: unknown) => subscriber.error(error),
        );
    });
  }
  override abortRun(): void {
    this.aborting.abort();
  }
  override clone(): FetchAgent {
    const copy = super.clone() as FetchAgent;
    copy.url = this.url;
    return copy;
  }
}

const State = Annotation.Root({ text: Annotation<string>() });

/** A graph of LangGraph.js, which throws when its signal aborts. */
const graphAgent = (): AbstractAgent => {
  const graph = new StateGraph(State)
    .addNode("wait", () => new Promise<never>(() => {}))
    .addEdge(START, "wait")
    .compile();
  return agentOf(async function* ({ runId }, { signal }) {
    yield* said(runId);
    for await (const _step of await graph.stream({ text: "" }, { signal })) yield* [];
  });
};

const AGENTS: Readonly<Record<string, () => Promise<AbstractAgent> | AbstractAgent>> = {
  HttpAgent: async () => new HttpAgent({ url: await unending() }),
  "an agent on fetch that throws": async () => new FetchAgent(await unending()),
  "a graph of LangGraph.js": graphAgent,
  "an agent that cannot be asked to stop, and says so later": async () => {
    class Unasked extends FetchAgent {
      override abortRun(): void {
        super.abortRun();
        return Promise.reject(new Error("cannot")) as unknown as void; // an async method, as the type allows
      }
    }
    return new Unasked(await unending());
  },
  "an agent function that throws": async () =>
    agentOf(async function* ({ runId }, { signal }) {
      yield* said(runId);
      await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("told to"))));
    }),
};
const WAYS = ["runner.stop", "HTTP stop", "close"] as const;

describe.each(Object.entries(AGENTS))(
  "%s: whatever it says when it is stopped, the run was stopped (L12)",
  (_n, make) => {
    test.each(WAYS)("by %s", async (way) => {
      const rejections: unknown[] = [];
      const note = (error: unknown): void => void rejections.push(error);
      process.on("unhandledRejection", note);
      onTestFinished(() => void process.off("unhandledRejection", note));
      const runner = makeRunner({ stopGraceMs: 2_000 });
      const runtime = new AgentRuntime({ agents: { agent: await make() }, runner });
      onTestFinished(() => runtime.close());
      const handler = createRuntimeHandler({ runtime });
      const ask = (path: string, body: unknown): Promise<Response> =>
        handler(post(body, { "Content-Type": "application/json" }, `http://localhost/agent/agent/${path}`));
      const answer = await ask("run", inputOf("t", "r"));
      await vi.waitFor(async () => expect(await runner.getRunEvents("r")).toHaveLength(3));

      if (way === "HTTP stop")
        expect(await (await ask("stop/t", { runId: "r" })).json()).toMatchObject({ stopped: true });
      else if (way === "runner.stop") expect(await runner.stop({ threadId: "t" })).toBe(true);
      else await runner.close();

      // A reader of the host that closes is let go.
      if (way === "close") await answer.body?.cancel();
      else expect(await answer.text()).not.toContain(EventType.RUN_ERROR);
      const reader = makeRunner({ dbName: runner.dbName });
      await vi.waitFor(async () => expect(await reader.getRun("r")).toMatchObject({ status: "stopped" }));
      expect((await collect(reader.connect({ threadId: "t" }))).at(-1)).toMatchObject({
        outcome: { type: "cancelled" },
      });
      // What it throws late is nobody's either.
      await new Promise((resolve) => setImmediate(resolve));
      expect(rejections).toEqual([]);
    });
  },
);
