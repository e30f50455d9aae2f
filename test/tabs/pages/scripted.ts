import type { RunErrorEvent, RunFinishedEvent } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { filter, firstValueFrom } from "rxjs";
import {
  connectRuntime,
  type HostKind,
  LocalAgent,
  type LocalRunParameters,
  RunnerError,
  type RuntimeConnection,
  type RuntimeStatus,
  type ThreadChange,
  type ThreadRun,
} from "ag-ui-local-runtime/client";
import type { FailurePoint } from "../../../src/run/failure-points.js";
import { type BlockedUntil, obeyed } from "./lab-orders.js";
import { type Note, Notes } from "./scripted-notes.js";
import { hold } from "./scripted-hold.js";
import { permitChannel } from "./scripted-permits.js";
import { PointsChannel } from "./scripted-points.js";
import { workerName } from "./worker-name.js";

/** How a call ended, as data. */
export type Outcome =
  { ok: true } | { ok: false; name: string; code: string | undefined; message: string; runId: string | undefined };

/** What a tab sees of a thread. */
export interface View {
  run: ThreadRun;
  /** A run is being applied. One that begins meanwhile makes the agent read the thread again: it sees ends twice. */
  isApplying: boolean;
  /** Text of the last assistant message. */
  text: string;
  /** Contents of all messages with their roles, in order. */
  messages: string[];
  /** Terminal events since the page was loaded. */
  ends: { type: string; outcome?: string; code?: string; message?: string }[];
  outcomes: Outcome[];
}

interface Opened {
  agent: LocalAgent;
  run: ThreadRun;
  ends: View["ends"];
  outcomes: Outcome[];
}

const outcomeOf = async (call: Promise<unknown>): Promise<Outcome> => {
  try {
    await call;
    return { ok: true };
  } catch (error) {
    const known = RunnerError.is(error) ? error : undefined;
    const { name, message } = error as Error;
    return { ok: false, name, message, code: known?.code, runId: known?.details.runId };
  }
};

/** Drives the client's API for a test, which has only data to give and take. */
class Lab {
  readonly connectRuntime = connectRuntime;
  readonly LocalAgent = LocalAgent;
  readonly RunnerError = RunnerError;
  readonly runtime: RuntimeConnection;
  status: RuntimeStatus = { is: "connecting" };
  readonly changes: ThreadChange[] = [];
  private readonly opened = new Map<string, Opened>();
  private readonly held = new Map<string, () => void>();
  private ofAgents: Notes | undefined;
  private readonly points = new PointsChannel();

  constructor(
    private readonly worker: string,
    kind: HostKind,
  ) {
    this.runtime = this.connect(worker, kind);
    this.runtime.status$.subscribe((status) => (this.status = status));
  }

  /**
   * @param worker its name: "<database>" or "<database>#<anything>"
   * @param startTimeoutMs as connectRuntime takes it
   */
  connect(worker: string, kind: HostKind = "shared-worker", startTimeoutMs = 15_000): RuntimeConnection {
    const shared = (name: string): SharedWorker =>
      new SharedWorker(new URL("./scripted.worker.ts", import.meta.url), {
        type: "module",
        name: workerName(worker, name),
        extendedLifetime: true,
      });
    const dedicated = (): Worker =>
      new Worker(new URL("./scripted.worker.ts", import.meta.url), { type: "module", name: worker });
    const page = async (): Promise<MessagePort> => (await import("./scripted-host.js")).hostOf(worker).connect();
    const hosts = { "shared-worker": { shared, dedicated }, worker: { dedicated }, page: { page } };
    return connectRuntime({ hosts: hosts[kind], startTimeoutMs });
  }

  /** An agent of the thread, which follows it from now on or sees its own runs only. */
  open(agentId: string, threadId: string, follow: boolean): void {
    const agent = this.runtime.agent(agentId, { threadId });
    const opened: Opened = { agent, run: { is: "idle" }, ends: [], outcomes: [] };
    this.opened.set(threadId, opened);
    // No hook of single events: deltas come as they are packed.
    agent.subscribe({
      onRunFinishedEvent: ({ event }) => void opened.ends.push(endOf(event)),
      onRunErrorEvent: ({ event }) => void opened.ends.push(endOf(event)),
    });
    agent.run$.subscribe((run) => (opened.run = run));
    if (follow) agent.follow();
  }

  view(threadId: string): View {
    const { agent, run, ends, outcomes } = this.get(threadId);
    const contentOf = ({ content }: { content?: unknown }): string => (typeof content === "string" ? content : "");
    return {
      run,
      isApplying: agent.isRunning,
      ends,
      outcomes,
      messages: agent.messages.map((message) => `${message.role}: ${contentOf(message)}`),
      text: contentOf(agent.messages.findLast(({ role }) => role === "assistant") ?? {}),
    };
  }

  /** Sends a message and runs the agent to the end of the run. */
  async run(
    threadId: string,
    content: unknown,
    runId: string = crypto.randomUUID(),
    inTurn: Pick<LocalRunParameters, "onBusy" | "whenOffline"> = {},
  ): Promise<Outcome> {
    const { agent, outcomes } = this.get(threadId);
    const text = typeof content === "string" ? content : JSON.stringify(content);
    agent.addMessage({ id: crypto.randomUUID(), role: "user", content: text });
    const outcome = await outcomeOf(agent.runAgent({ ...inTurn, runId }));
    outcomes.push(outcome);
    return outcome;
  }

  /** The same, and does not wait; how it ended is in the view's `outcomes`. */
  start(threadId: string, content: unknown, runId?: string): void {
    void this.run(threadId, content, runId);
  }

  /** The same, and has it wait for its turn or the network; resolves once it waits, or has begun. */
  async queue(threadId: string, content: unknown, runId: string): Promise<void> {
    const { agent } = this.get(threadId);
    const waits = firstValueFrom(agent.waits$.pipe(filter((id) => id === runId)));
    const begun = firstValueFrom(agent.run$.pipe(filter((run) => run.is === "running" && run.runId === runId)));
    void this.run(threadId, content, runId, { onBusy: "queue", whenOffline: "wait" });
    await Promise.race([waits, begun]);
  }

  /** The thread's waiting runs, with why they wait. */
  async waiting(threadId: string): Promise<string[]> {
    const runs = await this.runtime.waiting.list(threadId);
    return runs.map(({ runId, reason }) => `${runId} ${reason.is}`);
  }

  /** Ends the SharedWorker of this name from within; resolves once it has said that it does. */
  endHost(worker: string): Promise<void> {
    return obeyed({ end: worker });
  }

  /** Lets nothing else of the worker of this name run; resolves once it has said that it obeys. */
  blockHost(worker: string, until: BlockedUntil): Promise<void> {
    return obeyed({ block: worker, until });
  }

  /** Lets the worker of this name end when it reaches a point in a run's life for the `nth` time. */
  async endAt(worker: string, point: FailurePoint, nth: number): Promise<void> {
    await this.points.arm({ arm: worker, point, nth });
  }

  /** A worker has ended itself at this point. */
  hasReached(point: FailurePoint): boolean {
    return this.points.all.some((message) => "reached" in message && message.point === point);
  }

  /** What the agent `noted` has noted in this database so far. */
  notes(): Promise<Note[]> {
    this.ofAgents ??= new Notes(this.worker.split("#")[0]!);
    return this.ofAgents.all();
  }

  /** Notes each change of the list of threads from now on. */
  watch(): void {
    this.runtime.threads.watch().subscribe((change) => this.changes.push(change));
  }

  deleteDatabase(name: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const deleting = indexedDB.deleteDatabase(name);
      deleting.onsuccess = () => resolve();
      deleting.onerror = () => reject(deleting.error);
    });
  }

  /** Lets an agent that waits for it (`permitted`) go on. */
  permit(threadId: string): void {
    const channel = permitChannel(threadId);
    channel.postMessage("go on");
    channel.close();
  }

  /** Lets an agent of the thread that is asked to (`heldAt`, `late`) wait until `letGo`. */
  async hold(threadId: string): Promise<void> {
    this.held.set(threadId, await hold(threadId));
  }

  letGo(threadId: string): void {
    this.held.get(threadId)?.();
  }

  stop(threadId: string): void {
    this.get(threadId).agent.abortRun();
  }

  /** As `run`, on an agent that follows nothing, so that only the host can refuse it. */
  async runUnseen(agentId: string, threadId: string, content: unknown): Promise<Outcome> {
    return outcomeOf(
      (async () => {
        const agent = this.runtime.agent(agentId, { threadId });
        agent.addMessage({ id: crypto.randomUUID(), role: "user", content: JSON.stringify(content) });
        await agent.runAgent();
      })(),
    );
  }

  private get(threadId: string): Opened {
    const opened = this.opened.get(threadId);
    if (!opened) throw new Error(`lab.open("…", "${threadId}") comes first`);
    return opened;
  }
}

function endOf(event: RunFinishedEvent | RunErrorEvent): View["ends"][number] {
  if (event.type === EventType.RUN_FINISHED) {
    const { outcome } = event;
    return { type: event.type, ...(outcome && { outcome: outcome.type }) };
  }
  const { code, message } = event;
  return { type: event.type, message, ...(code !== undefined && { code }) };
}

declare global {
  interface Window {
    lab: Lab;
  }
}

const parameters = new URLSearchParams(location.search);
window.lab = new Lab(
  parameters.get("worker") ?? "scripted",
  // What the test's own address says.
  (parameters.get("kind") ?? "shared-worker") as HostKind,
);
