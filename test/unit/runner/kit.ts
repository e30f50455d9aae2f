import "fake-indexeddb/auto";
import { EventType, type BaseEvent } from "@ag-ui/client";
import type { AbstractAgent } from "@ag-ui/client";
import { Observable } from "rxjs";
import { onTestFinished, vi } from "vitest";
import type { Clock } from "../../../src/platform/clock.js";
import { systemClock } from "../../../src/platform/clock.js";
import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import type { Logger } from "../../../src/platform/log.js";
import { locksOf, type HeldLock, type Locks } from "../../../src/platform/locks.js";
import { IndexedDBAgentRunner, type IndexedDBAgentRunnerOptions } from "../../../src/runner/indexeddb-agent-runner.js";
import { InMemoryAgentRunner, type InMemoryAgentRunnerOptions } from "../../../src/runner/in-memory-agent-runner.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import type { Cursor } from "../../../src/run/types.js";
import type { Frame } from "../../../src/wire/shapes.js";
import type { AgentFunction } from "../../../src/worker/define-agent.js";
import { rawAgent } from "./plain-kit.js";

export * from "./plain-kit.js";

let names = 0;
/** A database of the test's own. */
export const freshDb = (): string => `unit-${process.pid}-${++names}`;

/** For agents that fail on purpose. */
export const quiet: Logger = { error: () => undefined, warn: () => undefined };

/** A runner that is closed when the test ends. */
export function makeRunner(options: IndexedDBAgentRunnerOptions = {}): IndexedDBAgentRunner {
  // A clock that runs fast must not make opening the database fail.
  const patient = { openTimeoutMs: 1_000_000 };
  const runner = new IndexedDBAgentRunner({
    dbName: freshDb(),
    ...patient,
    stopGraceMs: 50,
    logger: quiet,
    ...options,
  });
  onTestFinished(() => runner.close());
  return runner;
}

/** A runner in the memory that all such runners of the test share, those of one name. */
export function makeMemoryRunner(options: InMemoryAgentRunnerOptions = {}): InMemoryAgentRunner {
  const runner = new InMemoryAgentRunner({ stopGraceMs: 50, logger: quiet, ...options });
  onTestFinished(() => runner.destroy());
  return runner;
}

/** Both presets: what holds for the one holds for the other. */
export const PRESETS: readonly [string, (options?: IndexedDBAgentRunnerOptions) => LocalAgentRunner][] = [
  ["IndexedDBAgentRunner", makeRunner],
  ["InMemoryAgentRunner", makeMemoryRunner],
];

/** Tests yield what no compiler has seen. */
export const counted = (n: number): string => Array.from({ length: n }, (_, step) => `${step} `).join("");

/** Resolves at once where it has aborted already. */
export const whenAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });

/** Never ends until it is aborted. */
export const silent: AgentFunction = async function* (input, { signal }) {
  yield { type: EventType.TEXT_MESSAGE_START, messageId: `${input.runId}-a`, role: "assistant" };
  await whenAborted(signal);
};

/** Never ends at all. */
export const stubborn = (): AbstractAgent =>
  rawAgent(
    (input) =>
      new Observable<BaseEvent>((subscriber) => {
        subscriber.next({ type: EventType.RUN_STARTED, threadId: input.threadId, runId: input.runId });
        subscriber.next({ type: EventType.TEXT_MESSAGE_START, messageId: `${input.runId}-a`, role: "assistant" });
      }),
  );

export const textOf = (events: readonly BaseEvent[]): string =>
  events.map((event) => (event.type === EventType.TEXT_MESSAGE_CONTENT ? String(event["delta"]) : "")).join("");

export { eventsOfFrame } from "../../../src/wire/frames.js";

/** Frames of an attachment until one matches (it included), or its end. */
export async function framesUntil(
  runner: LocalAgentRunner,
  options: Parameters<LocalAgentRunner["attach"]>[0],
  matches: (frame: Frame) => boolean = () => false,
): Promise<Frame[]> {
  const reading = new AbortController();
  const frames: Frame[] = [];
  for await (const frame of runner.attach(options, reading.signal)) {
    frames.push(frame);
    if (matches(frame)) break;
  }
  reading.abort();
  return frames;
}

/** The cursor behind everything of a settled thread. */
export async function cursorOf(runner: LocalAgentRunner, threadId: string): Promise<Cursor | undefined> {
  const [prelude] = await framesUntil(runner, { threadId });
  return prelude?.type === "prelude" ? prelude.cursor : undefined;
}

/** A context whose locks fall at `die`, as a killed worker's do; its code goes on, as no killed worker's does. */
export function mortalLocks(manager = inProcessLockManager()): { locks: Locks; die: () => Promise<void> } {
  const inner = locksOf(manager);
  const held = new Set<HeldLock>();
  const keep = (lock: HeldLock | undefined): HeldLock | undefined => {
    if (lock !== undefined) held.add(lock);
    return lock;
  };
  return {
    locks: {
      tryHold: async (name) => keep(await inner.tryHold(name)),
      hold: async (name) => keep(await inner.hold(name))!,
      steal: async (name) => keep(await inner.steal(name))!,
      whenFree: (name, signal) => inner.whenFree(name, signal),
    },
    die: async () => {
      await Promise.all([...held].map((lock) => lock.release()));
    },
  };
}

/** Time that runs `factor` times as fast. */
export const fastClock = (factor: number): Clock => {
  const start = systemClock.now();
  return {
    now: () => start + (systemClock.now() - start) * factor,
    elapsed: () => systemClock.elapsed() * factor,
    after: (ms, signal) => systemClock.after(ms / factor, signal),
  };
};

/** Something that waits until it is let on. */
export function gated(): { readonly gate: Promise<void>; readonly letOn: () => void } {
  let letOn!: () => void;
  const gate = new Promise<void>((resolve) => (letOn = resolve));
  onTestFinished(() => letOn());
  return { gate, letOn };
}

/** Lets every write of this process fail as a full disk does, until the returned function is called. */
export function fullDisk(): () => void {
  const { transaction } = IDBDatabase.prototype;
  const failing = vi.spyOn(IDBDatabase.prototype, "transaction").mockImplementation(function (
    this: IDBDatabase,
    ...request
  ) {
    if (request[1] === "readwrite") throw new DOMException("", "QuotaExceededError");
    return transaction.apply(this, request);
  });
  const end = (): void => failing.mockRestore();
  onTestFinished(end);
  return end;
}
