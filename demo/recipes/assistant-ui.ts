// assistant-ui on the runtime: `<AssistantRuntimeProvider runtime={useAssistantUi(runtime, "poet")}>`.
// The thread in the browser's log is the truth: each page shows it, whichever tab runs it.
import { useEffect, useMemo } from "react";
import {
  ExportedMessageRepository,
  useAui,
  useRemoteThreadListRuntime,
  type AssistantRuntime,
  type ThreadMessageLike,
  type ThreadRuntime,
} from "@assistant-ui/react";
import { fromAgUiMessages, useAgUiRuntime, type UseAgUiRuntimeOptions } from "@assistant-ui/react-ag-ui";
import type { AgentSubscriber, Message, RunAgentInput, RunAgentResult } from "@ag-ui/client";
import {
  RunnerError,
  ThreadStore,
  type RuntimeConnection,
  type ThreadRun,
  type ThreadSnapshot,
} from "ag-ui-local-runtime/client";
import { endOf, lastTurn, messagesToRun, onlyAsks, shownMessages } from "./assistant-ui-messages.js";
import { threadIds, threadList } from "./assistant-ui-threads.js";

type History = NonNullable<NonNullable<UseAgUiRuntimeOptions["adapters"]>["history"]>;
type ResumeStream = NonNullable<History["resume"]>;
type State = NonNullable<Awaited<ReturnType<History["load"]>>["state"]>;

/** What else `useAgUiRuntime` takes: attachments, `onError`, `showThinking` … The same object each time. */
export type AssistantUiOptions = Omit<UseAgUiRuntimeOptions, "agent">;

const NO_OPTIONS: AssistantUiOptions = {};

/** assistant-ui's runtime for all threads of an agent. */
export function useAssistantUi(
  runtime: RuntimeConnection,
  agentId: string,
  options: AssistantUiOptions = NO_OPTIONS,
): AssistantRuntime {
  const idOf = useMemo(() => threadIds(), []);
  const adapter = useMemo(() => threadList(runtime, agentId, idOf), [runtime, agentId, idOf]);
  const runtimeHook = useMemo(
    () =>
      function useOwnRuntime(): AssistantRuntime {
        const item = useAui().threadListItem().getState();
        const threadId = item.remoteId ?? idOf(item.id);
        const thread = useMemo(() => new ShownThread(runtime, agentId, threadId), [runtime, agentId, threadId]);
        return useShownThread(thread, options);
      },
    [runtime, agentId, idOf, options],
  );
  const assistant = useRemoteThreadListRuntime({ adapter, runtimeHook });
  // Threads that other tabs begin, rename, archive and delete.
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const watching = runtime.threads.watch().subscribe({
      next: () => (timer ??= setTimeout(() => ((timer = undefined), void assistant.threads.reload()), 100)),
      error: (error: unknown) => console.error(error),
    });
    return () => {
      watching.unsubscribe();
      clearTimeout(timer);
    };
  }, [runtime, assistant]);
  return assistant;
}

/** A thread as this page shows it: its own runs as they stream, and those of other tabs by reading along. */
class ShownThread {
  readonly history: History;
  /** All that `useAgUiRuntime` uses of an agent; its type is that of another version of the client. */
  readonly agent: UseAgUiRuntimeOptions["agent"];
  isMounted = true;
  private readonly store: ThreadStore;
  private readonly runs = new Map<string, "own" | "read">();
  /** Ids of the questions that this page has shown. */
  private readonly seen = new Set<string>();
  private shown: Partial<ThreadSnapshot> = {};
  /** Own runs and readings that stream, and stops that are not written back yet. */
  private streams = 0;
  private look = (): void => undefined;
  /** Gives up the own run that has not begun: it waits for the history, or for the end of another tab's run. */
  private giveUp: (() => void) | undefined;

  constructor(runtime: RuntimeConnection, agentId: string, threadId: string) {
    this.store = new ThreadStore(runtime, { agentId, threadId });
    const runAgent = this.runAgent.bind(this);
    // A page that goes is no stop (L11), and this is called for both.
    const abortRun = (): void => {
      if (!this.isMounted) return;
      this.untilWrittenBack();
      if (this.giveUp === undefined) this.store.stop();
      else this.giveUp();
    };
    this.agent = { threadId, runAgent, abortRun } as unknown as UseAgUiRuntimeOptions["agent"];
    this.history = {
      load: async () => {
        const { state } = await this.ready();
        // Something was sent before the history was read. For undefined assistant-ui keeps what it shows; the rest is shown
        // when the run is over.
        if (this.streams > 0) return undefined as unknown as Awaited<ReturnType<History["load"]>>;
        return { ...ExportedMessageRepository.fromArray(this.toShow()), state: state as State }; // JSON, as all that crosses
      },
      resume: this.resume.bind(this),
      append: async () => undefined, // what was sent is in the log
    };
  }

  /** Shows what other tabs do. @returns ends that */
  follow(thread: ThreadRuntime): () => void {
    this.look = () => this.update(thread);
    const endings = [this.store.subscribe(() => this.look()), thread.subscribe(() => this.look())];
    this.look();
    return () => {
      this.look = () => undefined;
      endings.forEach((end) => end());
    };
  }

  /** At a stop, assistant-ui's next timer writes what it shows now back into its messages: what changes before is lost. */
  private untilWrittenBack(): void {
    this.streams++;
    const end = (): void => {
      this.streams--;
      this.look();
    };
    queueMicrotask(() => setTimeout(end));
  }

  private update(thread: ThreadRuntime): void {
    const { status, run, messages, state } = this.store.getSnapshot();
    const { isRunning, isLoading } = thread.getState();
    if (status !== "ready" || this.streams > 0 || isRunning || isLoading) return;
    if (run.is === "running") {
      if (this.runs.has(run.runId)) return; // it was left: its end will be shown
      this.runs.set(run.runId, "read");
    } else {
      const isOwn = run.last?.status === "finished" && this.runs.get(run.last.runId) === "own";
      const isSame = this.shown.run === run && this.shown.messages === messages;
      if (isSame || (isOwn && run.gone === undefined)) return;
    }
    const shown = this.toShow();
    // Not by `import`, which for a moment lists messages that are gone.
    thread.reset(shown);
    thread.importExternalState(state);
    const parentId = shown.at(-1)?.id ?? null;
    if (run.is === "running") thread.resumeRun({ parentId, stream: this.resume.bind(this) });
  }

  /** What the page is to show: of a live run the question alone, since {@link resume} brings the answer. */
  private toShow(): ThreadMessageLike[] {
    const snapshot = this.store.getSnapshot();
    const { run, messages } = (this.shown = snapshot);
    // What has streamed in is not shown any more, and this may be from before its end: that is to be shown once it is known.
    for (const runId of this.runs.keys()) this.runs.set(runId, "read");
    for (const { id } of messages) this.seen.add(id);
    if (run.is === "running") return fromAgUiMessages(lastTurn(messages).asked);
    const shown = fromAgUiMessages(shownMessages(snapshot));
    const [last, status] = [shown.at(-1), endOf(run)];
    return last === undefined || status === undefined ? shown : [...shown.slice(0, -1), { ...last, status }];
  }

  private async *resume({ abortSignal }: Parameters<ResumeStream>[0]): ReturnType<ResumeStream> {
    const { store } = this;
    const { run: first } = store.getSnapshot();
    const questionIn = (messages: readonly Message[] = []): string | undefined => lastTurn(messages).asked.at(-1)?.id;
    const question = questionIn(this.shown.messages);
    let wake = (): void => undefined;
    const end = store.subscribe(() => wake());
    abortSignal.addEventListener("abort", () => wake(), { once: true });
    this.streams++;
    try {
      for (;;) {
        const now = store.getSnapshot();
        if (now.run === first && questionIn(now.messages) !== question) {
          // The run was heard of before its question: it is shown again, with that.
          if (first.is === "running") this.runs.delete(first.runId);
          return;
        }
        const { answer } = lastTurn(now.messages);
        const { messages } = ExportedMessageRepository.fromArray(fromAgUiMessages(answer));
        yield { content: messages.flatMap(({ message }) => (message.role === "assistant" ? message.content : [])) };
        if (abortSignal.aborted || now.run !== first) return;
        if (store.getSnapshot() === now) await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      end();
      this.streams--;
    }
  }

  private async runAgent(given: RunAgentInput, subscriber: AgentSubscriber): Promise<RunAgentResult> {
    this.streams++;
    try {
      for (;;) {
        const { run } = await this.unlessGivenUp(this.ready());
        const result = await this.runOnce(given, subscriber);
        if (result !== undefined) return result;
        await this.unlessGivenUp(this.endOfRunAfter(run));
      }
    } finally {
      this.streams--;
    }
  }

  /** @returns undefined where another tab has begun at the same time, and what was sent here can come behind it */
  private async runOnce(given: RunAgentInput, subscriber: AgentSubscriber): Promise<RunAgentResult | undefined> {
    const { agent } = this.store;
    const { runId, tools, context, forwardedProps, resume, state } = given;
    const before = agent.messages;
    const messages = messagesToRun(before, this.seen, given.messages);
    // Where turns came that the page has not shown, it shows all of the thread at the end.
    const isAllShown = before.every(({ id, role }) => role !== "user" || this.seen.has(id));
    // What changes, answers or goes on with something is not right any more after another run.
    const mayWait = resume === undefined && onlyAsks(before, messages);
    if (state !== null && JSON.stringify(state) !== JSON.stringify(agent.state)) agent.setState(state);
    agent.messages = messages;
    for (const { id } of given.messages) this.seen.add(id);
    this.runs.set(runId, isAllShown ? "own" : "read");
    try {
      const parameters = { runId, tools, context, forwardedProps, ...(resume && { resume }) };
      return await agent.runAgent(parameters, mayWait ? untilBusy(subscriber) : subscriber);
    } catch (error) {
      // Refused: the message is no part of the thread.
      if (agent.messages === messages) agent.messages = before;
      else if (isBusy(error)) {
        // More has come meanwhile. What was cut is read again.
        const isKept = ({ id }: Message): boolean => before.some((known) => known.id === id);
        const isSent = ({ id }: Message): boolean => messages.some((sent) => sent.id === id);
        agent.messages = agent.messages.filter((message) => isKept(message) || !isSent(message));
        agent.connectAgent().catch(() => undefined);
      }
      if (mayWait && isBusy(error)) return undefined;
      throw error;
    }
  }

  /** Rejects if the user stops the run meanwhile. */
  private async unlessGivenUp<T>(waiting: Promise<T>): Promise<T> {
    const givenUp = new Promise<never>((_, reject) => {
      this.giveUp = () => reject(new Error("Stopped before it began"));
    });
    try {
      return await Promise.race([waiting, givenUp]);
    } finally {
      this.giveUp = undefined;
    }
  }

  /** Resolves when the thread has had another run than `before` that is over. */
  private endOfRunAfter(before: ThreadRun): Promise<void> {
    return new Promise((resolve) => {
      let end: (() => void) | undefined;
      const look = (): void => {
        const { run } = this.store.getSnapshot();
        if (run.is === "running" || run === before) return;
        end?.();
        resolve();
      };
      end = this.store.subscribe(look);
      look();
    });
  }

  private async ready(): Promise<ThreadSnapshot> {
    await this.store.settled();
    const snapshot = this.store.getSnapshot();
    if (snapshot.status !== "ready") throw snapshot.error ?? new Error("The thread cannot be read");
    return snapshot;
  }
}

const isBusy = (error: unknown): boolean => RunnerError.is(error, "thread-busy");

/** Tells nothing of a run that was refused because another one is live. */
function untilBusy(subscriber: AgentSubscriber): AgentSubscriber {
  let isRefused = false;
  return {
    ...subscriber,
    onRunFailed: (failed) => {
      isRefused = isBusy(failed.error);
      return isRefused ? undefined : subscriber.onRunFailed?.(failed);
    },
    onRunFinalized: (ended) => (isRefused ? undefined : subscriber.onRunFinalized?.(ended)),
  };
}

function useShownThread(thread: ShownThread, options: AssistantUiOptions): AssistantRuntime {
  // Stands first: its end comes before that of the hook below, which aborts.
  useEffect(() => {
    thread.isMounted = true;
    return () => void (thread.isMounted = false);
  }, [thread]);
  const adapters = useMemo(() => ({ ...options.adapters, history: thread.history }), [options, thread]);
  const assistant = useAgUiRuntime({ ...options, agent: thread.agent, adapters });
  useEffect(() => thread.follow(assistant.thread), [thread, assistant]);
  return assistant;
}
