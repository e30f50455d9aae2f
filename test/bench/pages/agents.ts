import { AbstractAgent, EventType, type AgentStateMutation, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import type { RunAgentParameters, RunAgentResult } from "@ag-ui/client";
import { defineAgent } from "ag-ui-local-runtime/worker";
import { lastValueFrom, Observable } from "rxjs";
import { PIECE, toldMessage } from "./told.js";
import { ABORTS_CHANNEL, MARKS_CHANNEL, say, stamp, WORD, type Aborted, type Emitted } from "./stamps.js";

/** How often the yielding agent lets other tasks of its host run. */
const YIELD_EVERY = 10;

const marks = new BroadcastChannel(MARKS_CHANNEL);
const tell = (runId: string, first: number): void => say(marks, { runId, first, last: stamp() } satisfies Emitted);
const aborts = new BroadcastChannel(ABORTS_CHANNEL);

const countOf = (input: RunAgentInput): number => Number((input.forwardedProps as { n?: number } | undefined)?.n ?? 1);
const start = (messageId: string): BaseEvent =>
  ({ type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" }) as BaseEvent;
const delta = (messageId: string): BaseEvent =>
  ({ type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: WORD }) as BaseEvent;
const end = (messageId: string): BaseEvent => ({ type: EventType.TEXT_MESSAGE_END, messageId }) as BaseEvent;

/** Events of a run that says `n` words. */
export function* wordEvents(threadId: string, runId: string, n: number): Generator<BaseEvent> {
  yield { type: EventType.RUN_STARTED, threadId, runId } as BaseEvent;
  const messageId = `m-${runId}`;
  yield start(messageId);
  for (let i = 0; i < n; i++) yield delta(messageId);
  yield end(messageId);
  yield { type: EventType.RUN_FINISHED, threadId, runId } as BaseEvent;
}

/** Emits everything in one task. */
export class SyncAgent extends AbstractAgent {
  override run(input: RunAgentInput): Observable<BaseEvent> {
    return new Observable((subscriber) => {
      const first = stamp();
      const { threadId, runId } = input;
      subscriber.next({ type: EventType.RUN_STARTED, threadId, runId } as BaseEvent);
      const messageId = `m-${runId}`;
      subscriber.next(start(messageId));
      for (let i = countOf(input); i > 0; i--) subscriber.next(delta(messageId));
      subscriber.next(end(messageId));
      subscriber.next({ type: EventType.RUN_FINISHED, threadId, runId } as BaseEvent);
      tell(runId, first);
      subscriber.complete();
    });
  }
}

/** As {@link SyncAgent}, past the schema check and the verification of its own pipeline. */
export class BareAgent extends SyncAgent {
  override async runAgent(parameters?: RunAgentParameters): Promise<RunAgentResult> {
    const input = this.prepareRunAgentInput(parameters);
    await lastValueFrom<AgentStateMutation, undefined>(this.apply(input, this.run(input), []), {
      defaultValue: undefined,
    });
    return { result: undefined, newMessages: [] };
  }
}

/** An async generator that never waits. */
export const generatorAgent = defineAgent<BaseEvent>(async function* (input) {
  const first = stamp();
  const messageId = `m-${input.runId}`;
  yield start(messageId);
  for (let i = countOf(input); i > 0; i--) yield delta(messageId);
  yield end(messageId);
  tell(input.runId, first);
});

/** As an agent that reads a network stream: a task for every few events. */
export const yieldingAgent = defineAgent<BaseEvent>(async function* (input) {
  const { port1, port2 } = new MessageChannel();
  let resume = (): void => undefined;
  port1.onmessage = () => resume();
  const first = stamp();
  const messageId = `m-${input.runId}`;
  yield start(messageId);
  for (let i = 0, n = countOf(input); i < n; i++) {
    yield delta(messageId);
    if (i % YIELD_EVERY !== YIELD_EVERY - 1) continue;
    await new Promise<void>((resolve) => {
      resume = resolve;
      port2.postMessage(null);
    });
  }
  yield end(messageId);
  tell(input.runId, first);
  port1.close();
});

/** Says `n` words and waits to be stopped. */
export const hangingAgent = defineAgent<BaseEvent>(async function* (input, { signal }) {
  const messageId = `m-${input.runId}`;
  yield start(messageId);
  for (let i = countOf(input); i > 0; i--) yield delta(messageId);
  await new Promise<void>((resolve) => {
    const aborted = (): void => {
      say(aborts, { runId: input.runId, at: stamp() } satisfies Aborted);
      resolve();
    };
    signal.addEventListener("abort", aborted, { once: true });
  });
});

/** Says `n` words and waits to be stopped; where that run broke, it says one more and ends. */
export const recoveringAgent = defineAgent<BaseEvent>(
  async function* (input, { signal, attempt }) {
    const last = input.messages.at(-1);
    const goesOn = attempt !== undefined && last?.role === "assistant";
    const messageId = goesOn ? last.id : `m-${input.runId}`;
    yield start(messageId);
    for (let i = goesOn ? 1 : countOf(input); i > 0; i--) yield delta(messageId);
    if (!goesOn) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    yield end(messageId);
  },
  { continues: true },
);

/** `rate` deltas a second, as many as are due at each timer. */
const paced = (word: () => string) =>
  defineAgent<BaseEvent>(async function* (input) {
    const { n, rate } = input.forwardedProps as { n: number; rate: number };
    const messageId = `m-${input.runId}`;
    yield start(messageId);
    const begun = performance.now();
    for (let said = 0; said < n;) {
      const due = Math.min(n, Math.floor(((performance.now() - begun) / 1_000) * rate));
      for (; said < due; said++) yield { ...delta(messageId), delta: word() } as BaseEvent;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    yield end(messageId);
  });

/** Each delta says when it was emitted. */
export const pacedAgent = paced(() => `${stamp()} `);
export const steadyAgent = paced(() => WORD);

/** Answers with the messages of a long thread, some pieces each. */
export const tellingAgent = defineAgent<BaseEvent>(async function* (input) {
  const { answers, from } = input.forwardedProps as { answers: number; from: number };
  for (let i = from; i < from + answers; i++) {
    const { id: messageId, content } = toldMessage(i);
    yield start(messageId);
    for (let at = 0; at < content.length; at += PIECE) {
      yield { ...delta(messageId), delta: content.slice(at, at + PIECE) } as BaseEvent;
    }
    yield end(messageId);
  }
});
