import {
  connectRuntime,
  FrontendTools,
  type LocalAgent,
  RunnerError,
  type RuntimeStatus,
  type ThreadRun,
  ThreadStore,
} from "ag-ui-local-runtime/client";
import { obeyed } from "./lab-orders.js";
import { readLog, replayed } from "./read-log.js";
import { hold } from "./scripted-hold.js";
import { deviceSettings, loadedChannel } from "./sync-name.js";
import { workerName } from "./worker-name.js";

/** Query: `worker`, the name of the device's SharedWorker. */
const worker = new URLSearchParams(location.search).get("worker") ?? "";
const { dbName } = deviceSettings(worker);

/** How a run that this tab started has ended, as data. */
interface Outcome {
  readonly code?: string;
  readonly runId?: string | undefined;
  readonly device?: string | undefined;
}

interface Opened {
  readonly agent: LocalAgent;
  run: ThreadRun;
  readonly ends: string[];
  readonly outcomes: Outcome[];
  /** A message that is still there once had more, or other, text. */
  isShorter: boolean;
}

const textOf = ({ content }: { content?: unknown } = {}): string => (typeof content === "string" ? content : "");

async function outcomeOf(agent: LocalAgent, order: unknown, runId: string): Promise<Outcome> {
  agent.addMessage({ id: `${runId}-u`, role: "user", content: JSON.stringify(order) });
  try {
    await agent.runAgent({ runId });
    return {};
  } catch (error) {
    const { code, details } = RunnerError.is(error) ? error : { code: String(error), details: {} };
    return { code, runId: details.runId, device: details.device };
  }
}

class SyncedTab {
  status: RuntimeStatus = { is: "connecting" };
  private readonly opened = new Map<string, Opened>();
  private readonly held = new Map<string, () => void>();
  private offering: ThreadStore | undefined;
  private readonly runtime = connectRuntime({
    hosts: {
      shared: (name) =>
        new SharedWorker(new URL("./sync-device.worker.ts", import.meta.url), {
          type: "module",
          name: workerName(worker, name),
        }),
    },
  });

  constructor() {
    this.runtime.status$.subscribe((status) => (this.status = status));
  }

  get sync() {
    return this.status.is === "connected" ? this.status.sync : undefined;
  }

  open(threadId: string, agentId = "count"): void {
    const agent = this.runtime.agent(agentId, { threadId });
    const opened: Opened = { agent, run: { is: "idle" }, ends: [], outcomes: [], isShorter: false };
    this.opened.set(threadId, opened);
    let before = new Map<string, string>();
    agent.subscribe({
      onRunFinishedEvent: () => void opened.ends.push("RUN_FINISHED"),
      onRunErrorEvent: ({ event }) => void opened.ends.push(event.code ?? "RUN_ERROR"),
      onMessagesChanged: ({ messages }) => {
        const now = new Map(messages.map((message) => [message.id, textOf(message)]));
        for (const [id, text] of before) if (now.has(id) && !now.get(id)!.startsWith(text)) opened.isShorter = true;
        before = now;
      },
    });
    agent.run$.subscribe((run) => (opened.run = run));
    agent.follow();
  }

  view(threadId: string) {
    const { agent, run, ends, outcomes, isShorter } = this.opened.get(threadId)!;
    return {
      run,
      ends,
      outcomes,
      isShorter,
      messages: agent.messages.map(({ role, id, content }) => `${role} ${id}: ${textOf({ content })}`),
      text: textOf(agent.messages.findLast(({ role }) => role === "assistant")),
    };
  }

  /** Shows the thread of an agent that calls tools: the handler of `a` runs in a tab, `c` is answered by a person. */
  offer(threadId: string): void {
    const tools = new FrontendTools();
    const tool = { description: "", parameters: { type: "object" } };
    tools.add({ ...tool, name: "a", handler: () => `a of ${worker.split("#")[3]}` });
    tools.add({ ...tool, name: "c" });
    this.offering = new ThreadStore(this.runtime, { agentId: "caller", threadId, tools });
    this.offering.subscribe(() => undefined);
  }

  /** Asks the agent for calls of these tools. */
  async call(tools: string): Promise<void> {
    await this.offering!.send(tools);
  }

  /** Gives the first call its result. @returns "ok", or the code of the error */
  answerCall(result: string): Promise<string> {
    const { toolCallId } = this.offering!.getSnapshot().toolCalls[0]!;
    return this.offering!.answerToolCall(toolCallId, result).then(
      () => "ok",
      (error: unknown) => (RunnerError.is(error) ? error.code : String(error)),
    );
  }

  /** What waits, and what was said. */
  offered() {
    const { status, toolCalls, messages } = this.offering!.getSnapshot();
    const calls = toolCalls.map((call) => `${call.name} ${call.status}${call.elsewhere ? " elsewhere" : ""}`);
    return {
      isReady: status === "ready",
      calls,
      said: messages.map((message) => `${message.role}: ${textOf(message)}`),
    };
  }

  /** Starts a run; how it ended is in the view's `outcomes`. */
  start(threadId: string, order: unknown, runId: string): void {
    const { agent, outcomes } = this.opened.get(threadId)!;
    void outcomeOf(agent, order, runId).then((outcome) => outcomes.push(outcome));
  }

  /** In place of the last question and its answer, as after an edit: a branch. */
  instead(threadId: string, order: unknown, runId: string): void {
    const { agent } = this.opened.get(threadId)!;
    agent.messages = agent.messages.slice(0, -2);
    this.start(threadId, order, runId);
  }

  takeUp(threadId: string, runId: string): Promise<void> {
    return this.runtime.threads.activate(threadId, runId);
  }

  /** As CopilotKit answers: under the id of the run that asked. */
  async answer(threadId: string, payload: string, runId: string): Promise<void> {
    const { agent } = this.opened.get(threadId)!;
    const resume = agent.pendingInterrupts.map(({ id }) => ({
      interruptId: id,
      status: "resolved" as const,
      payload,
    }));
    await agent.runAgent({ runId, resume });
  }

  /** When the thread's runs began that have this id. */
  async runsOf(threadId: string, runId: string): Promise<string[]> {
    const runs = await this.runtime.runner().listRuns(threadId, { limit: 500 });
    const its = runs.filter((run) => run.runId === runId);
    return its.map(({ startedAt, status, prevRunIndex }) => `${startedAt} ${status} ${prevRunIndex}`).toSorted();
  }

  /** A run of an agent that does not follow the thread. */
  runUnseen(threadId: string, order: unknown, runId: string): Promise<Outcome> {
    return outcomeOf(this.runtime.agent("count", { threadId }), order, runId);
  }

  stop(threadId: string): Promise<boolean> {
    return this.runtime.runner().stop({ threadId });
  }

  /** The thread's runs by their ids, whatever their indexes are here. */
  async tree(threadId: string): Promise<Record<string, string>> {
    const runs = await this.runtime.runner().listRuns(threadId, { limit: 500 });
    const idOf = new Map(runs.map(({ runIndex, runId }) => [runIndex, runId]));
    const rows = runs.map(({ runId, prevRunIndex, status }) => [
      runId,
      `${status} after ${idOf.get(prevRunIndex ?? -1) ?? "nothing"}`,
    ]);
    return Object.fromEntries(rows.toSorted(([one], [other]) => (one! < other! ? -1 : 1))) as Record<string, string>;
  }

  async deviceOf(threadId: string, runId: string): Promise<string | undefined> {
    return (await this.runtime.runner().getRun(runId, { threadId }))?.device?.name;
  }

  async messages(threadId: string): Promise<string[]> {
    const messages = await this.runtime.runner().getThreadMessages(threadId);
    return messages.map(({ role, id, content }) => `${role} ${id}: ${textOf({ content })}`);
  }

  async listed(): Promise<[string, string, boolean][]> {
    return (await this.runtime.threads.list()).map(({ threadId, title, archived }) => [threadId, title, archived]);
  }

  /** Ids of the threads whose runs are not here. */
  async absent(): Promise<string[]> {
    return (await this.runtime.threads.list()).flatMap(({ threadId, absent }) => (absent ? [threadId] : [])).toSorted();
  }

  /** The code of the error of a read. */
  async codeOfReading(threadId: string): Promise<string> {
    return this.runtime
      .runner()
      .getThreadMessages(threadId)
      .then(
        () => "read",
        (error: unknown) => (RunnerError.is(error) ? error.code : String(error)),
      );
  }

  rename = async (threadId: string, title: string): Promise<void> =>
    void (await this.runtime.threads.rename(threadId, title));
  archive = async (threadId: string): Promise<void> => void (await this.runtime.threads.archive(threadId));
  remove = (threadId: string): Promise<void> => this.runtime.threads.delete(threadId);

  async thread(threadId: string) {
    const found = await this.runtime.runner().getThread(threadId);
    return found === undefined ? "none" : { title: found.title, archived: found.archived };
  }

  async hold(threadId: string): Promise<void> {
    this.held.set(threadId, await hold(threadId));
  }

  letGo(threadId: string): void {
    this.held.get(threadId)?.();
  }

  /** Past the host: the log of this device. */
  async log(threadId: string) {
    const { runs } = await readLog(dbName, [threadId], {});
    const [shown] = await replayed(dbName, [threadId]);
    return {
      runs: runs.map(({ runId, status, events }) => ({ runId, status, events: events.map(({ event }) => event) })),
      messages: shown?.messages,
    };
  }

  /** Every record of the database that is about this run, by store. */
  async recordsOf(runId: string): Promise<Record<string, number>> {
    const db = await new Promise<IDBDatabase>((resolve, reject) => {
      const opening = indexedDB.open(dbName);
      opening.onsuccess = () => resolve(opening.result);
      opening.onerror = () => reject(opening.error ?? new Error("not opened"));
    });
    const counts: Record<string, number> = {};
    for (const store of db.objectStoreNames) {
      const records = await new Promise<unknown[]>((resolve) => {
        const reading = db.transaction(store).objectStore(store).getAll();
        reading.onsuccess = () => resolve(reading.result as unknown[]);
      });
      counts[store] = records.filter((record) => JSON.stringify(record)?.includes(runId)).length;
    }
    db.close();
    return counts;
  }

  async unlock(passphrase: string): Promise<void> {
    await this.runtime.encryption.unlock(passphrase);
  }

  lock(): Promise<void> {
    return this.runtime.encryption.lock();
  }

  /** The databases of this device that have the text in a record. */
  async databasesWith(text: string): Promise<string[]> {
    const found: string[] = [];
    for (const { name = "" } of await indexedDB.databases()) {
      if (!name.startsWith(dbName)) continue;
      const db = await new Promise<IDBDatabase>((resolve, reject) => {
        const opening = indexedDB.open(name);
        opening.onsuccess = () => resolve(opening.result);
        opening.onerror = () => reject(opening.error ?? new Error("not opened"));
      });
      for (const store of db.objectStoreNames) {
        const all = db.transaction(store).objectStore(store);
        for (const reading of [all.getAll(), all.getAllKeys()]) {
          const records = await new Promise<unknown[]>((resolve) => {
            reading.onsuccess = () => resolve(reading.result as unknown[]);
          });
          const has = records.some((record) => JSON.stringify(record, bytesAsText)?.includes(text));
          if (has) found.push(`${name} ${store}`);
        }
      }
      db.close();
    }
    return found;
  }

  /** Ends the worker from within. */
  endHost(): Promise<void> {
    return obeyed({ end: worker });
  }

  /** What the worker has loaded. */
  loaded(): Promise<string[]> {
    const channel = new BroadcastChannel(loadedChannel(dbName));
    const answer = new Promise<string[]>((resolve) => {
      channel.onmessage = ({ data }) => (channel.close(), resolve(data as string[]));
    });
    channel.postMessage("what");
    return answer;
  }
}

const bytesAsText = (_: string, value: unknown): unknown =>
  value instanceof Uint8Array ? new TextDecoder("latin1").decode(value) : value;

declare global {
  interface Window {
    synced: SyncedTab;
  }
}
window.synced = new SyncedTab();
