import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { HttpAgent, type BaseEvent, type Message, type RunAgentInput } from "@ag-ui/client";
import { AgentRuntime, createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { connectRuntime } from "ag-ui-local-runtime/client";
import { serveRuntime } from "ag-ui-local-runtime/worker";
import { firstValueFrom, toArray } from "rxjs";
import { onTestFinished } from "vitest";
import { rebuild, type View } from "../../../src/conformance/view.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import type { RunSummary } from "../../../src/wire/shapes.js";
import { agentOf, inputOf, silent, user } from "../runner/kit.js";
import { onWire, type SpecStream, type Turn } from "./streams.js";

/** A server whose answer to each request is the stream that its path names. */
export class StreamServer {
  private readonly turns = new Map<string, Turn>();
  private readonly server: Server = createServer((req, res) => {
    let body = "";
    req.on("data", (piece) => (body += String(piece)));
    req.on("end", () => {
      const input = JSON.parse(body) as RunAgentInput;
      this.received.push(input);
      res.writeHead(200, { "content-type": "text/event-stream" });
      for (const event of this.turns.get(req.url!)!.stream) res.write(`data: ${onWire(event, input)}\n\n`);
      res.end();
    });
  });
  /** The inputs that came in, in order. */
  readonly received: RunAgentInput[] = [];

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  agentFor(turn: Turn): HttpAgent {
    const path = `/${this.turns.size}`;
    this.turns.set(path, turn);
    const { port } = this.server.address() as AddressInfo; // it listens on a port
    return new HttpAgent({ url: `http://127.0.0.1:${port}${path}`, agentId: "stream" });
  }
}

/** What a stream led to, as every reader of the thread has it. */
export interface Outcome {
  readonly run: RunSummary;
  /** Of the last run, as they stand in the log. */
  readonly events: readonly BaseEvent[];
  /** By the way that it was read. */
  readonly views: Readonly<Record<string, View>>;
}

/** Runs a thread of turns, then reads it in every way. */
export async function drive(
  runner: LocalAgentRunner,
  server: StreamServer,
  { before = [], input = {}, stream }: Pick<SpecStream, "before" | "input" | "stream">,
): Promise<Outcome> {
  const threadId = "t";
  let held: View = { messages: [], state: {}, interrupts: [] };
  const turns = [...before, { input, stream }];
  for (const [n, turn] of turns.entries()) {
    const runId = `r${n}`;
    const question = user(`u-${n}`);
    const request = { ...inputOf(threadId, runId, [...held.messages, question] as Message[]), ...turn.input };
    const events = await firstValueFrom(
      runner.run({ threadId, agent: server.agentFor(turn), input: request }).pipe(toArray()),
    );
    const had = {
      ...held,
      messages: request.messages,
      ...("state" in request && hasState(request) && { state: request.state }),
    };
    held = await rebuild("the run", events, had);
  }
  const [run] = await runner.listRuns(threadId, { limit: 1 });
  const placed = await runner.getRunEvents(run!.runId, { threadId });
  return {
    run: run!,
    events: placed.map(({ event }) => event),
    views: { "the run's own stream": held, ...(await readings(runner, threadId)) },
  };
}

/** `{}` says that no state is set. */
const hasState = ({ state }: RunAgentInput): boolean => Object.keys((state ?? {}) as object).length > 0;

async function readings(runner: LocalAgentRunner, threadId: string): Promise<Record<string, View>> {
  const views: Record<string, View> = {};
  for (const replay of ["events", "snapshot"] as const) {
    const events = await firstValueFrom(runner.connect({ threadId, replay }).pipe(toArray()));
    views[`connect with ${replay}`] = await rebuild(replay, events);
  }

  const runtime = new AgentRuntime({ agents: { stream: agentOf(silent) }, runner });
  const handler = createRuntimeHandler({ runtime });
  const reader = new HttpAgent({
    url: "http://runtime.test/agent/stream/connect",
    threadId,
    fetch: (url, init) => handler(new Request(url, init)),
  });
  await reader.runAgent({ runId: "reading" });
  views["HTTP connect"] = { messages: reader.messages, state: reader.state, interrupts: reader.pendingInterrupts };

  const host = serveRuntime(runtime);
  const connection = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(() => connection.close());
  const tab = connection.agent("stream", { threadId });
  await tab.connectAgent();
  views["a tab"] = { messages: tab.messages, state: tab.state, interrupts: tab.pendingInterrupts };
  return views;
}
