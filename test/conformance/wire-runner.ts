import { AbstractAgent, type BaseEvent } from "@ag-ui/client";
import type {
  AgentRunner,
  AgentRunnerConnectRequest,
  AgentRunnerIsRunningRequest,
  AgentRunnerRunRequest,
  AgentRunnerStopRequest,
} from "ag-ui-local-runtime";
import { serveRuntime, type RuntimeHost } from "ag-ui-local-runtime/worker";
import { EMPTY, map, mergeMap, ReplaySubject, type Observable } from "rxjs";
import { attachFrames, runFrames } from "../../src/client/frames.js";
import { HostLink } from "../../src/client/host-link.js";
import { unpackEntry } from "../../src/run/pack.js";
import type { Frame } from "../../src/wire/shapes.js";

const NO_SUCH_CALL = "a tab has no such call: it reads a thread by attaching to it";

/** What the kit asks beyond the contract, with why a tab does without it. */
export const NOT_ON_THE_WIRE = {
  "reads.list-threads": NO_SUCH_CALL,
  "reads.list-runs": NO_SUCH_CALL,
  "reads.run-status": NO_SUCH_CALL,
  "reads.run-events": NO_SUCH_CALL,
  "reads.thread-messages": NO_SUCH_CALL,
  "reads.thread-messages-live": NO_SUCH_CALL,
  "reads.thread-events": NO_SUCH_CALL,
  "reads.thread-state": NO_SUCH_CALL,
  "reads.clear-threads": NO_SUCH_CALL,
  "reads.destroy": NO_SUCH_CALL,
} as const;

/** An agent that is given to the host by name is whoever waits first in this line. */
class Line extends AbstractAgent {
  readonly waiting: AbstractAgent[] = [];

  override clone(): AbstractAgent {
    return this.waiting.shift() ?? new Line();
  }

  override run(): Observable<BaseEvent> {
    return EMPTY;
  }
}

const eventsOf = (frame: Frame): readonly BaseEvent[] =>
  frame.type === "prelude"
    ? frame.events
    : frame.type === "chunk"
      ? frame.chunk.entries.flatMap((entry) => unpackEntry(entry))
      : [];

/** A runner as a tab has it: every call goes over ports to a host, which has the agents. */
export class WireAgentRunner implements AgentRunner {
  readonly host: RuntimeHost;
  private readonly line = new Line();
  private readonly link: HostLink;

  constructor(readonly dbName: string) {
    this.host = serveRuntime({ agents: { line: this.line }, dbName, stopGraceMs: 50 });
    this.link = new HostLink({
      hosts: { page: () => Promise.resolve(this.host.connect()) },
      startTimeoutMs: 10_000,
      callTimeoutMs: 10_000,
      extendedLifetime: false,
    });
  }

  run({ threadId, agent, input }: AgentRunnerRunRequest): Observable<BaseEvent> {
    this.line.waiting.push(agent);
    const events$ = new ReplaySubject<BaseEvent>();
    runFrames(this.link, { threadId, agentId: "line", input }, () => undefined)
      .pipe(mergeMap(eventsOf))
      .subscribe(events$);
    // Each reader its own copy, as if each were a tab.
    return events$.pipe(map((event) => structuredClone(event)));
  }

  connect({ threadId }: AgentRunnerConnectRequest): Observable<BaseEvent> {
    return attachFrames(this.link, { threadId, replay: "events", follow: false }).pipe(mergeMap(eventsOf));
  }

  isRunning(request: AgentRunnerIsRunningRequest): Promise<boolean> {
    return this.link.call(({ api }) => api.isRunning(request));
  }

  stop(request: AgentRunnerStopRequest): Promise<boolean> {
    return this.link.call(({ api }) => api.stop(request));
  }

  async close(): Promise<void> {
    await this.link.close();
    await this.host.close();
  }
}
