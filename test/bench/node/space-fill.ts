import { EventType, type BaseEvent } from "@ag-ui/client";
import { ChunkBuilder } from "../../../src/run/pack.js";
import { encodeMessage, type Brief, type SentChunk, type SpaceMessage } from "../../../src/sync/messages.js";
import type { Space } from "../../../src/sync/space.js";
import { keyOfThread } from "../../../src/sync/thread-key.js";
import type { Expected } from "../pages/tab-devices.js";
import { added, online, openSpace } from "./space-paced.js";

const DEVICE = { id: "bench-writer", name: "Bench" };
/** RUN_STARTED, the start and the end of the message, RUN_FINISHED. */
const AROUND = 4;
const WORD = "word ";
/** Entries of different threads that are on their way at once. */
const AT_ONCE = 64;

/** One run: a question, and an answer that streams. */
interface FilledRun {
  readonly threadId: string;
  readonly runId: string;
  readonly prev: string | null;
  readonly events: number;
  /** Of an entry while the run goes on; undefined: the run is sent when it has ended, as a whole. */
  readonly perEntry: number | undefined;
  readonly at: number;
}

function* eventsOf({ threadId, runId, events }: FilledRun): Generator<BaseEvent> {
  const messageId = `m-${runId}`;
  yield { type: EventType.RUN_STARTED, threadId, runId } as BaseEvent;
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
  for (let i = AROUND; i < events; i++)
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: WORD } as BaseEvent;
  yield { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent;
  yield { type: EventType.RUN_FINISHED, threadId, runId } as BaseEvent;
}

/** The chunks of a run, the last one with its end. */
function* chunksOf(run: FilledRun): Generator<SentChunk> {
  const { perEntry = Infinity, at } = run;
  const builder = new ChunkBuilder({ threadId: run.threadId, runIndex: 0, epoch: 0 });
  for (const event of eventsOf(run)) {
    builder.add(event, at);
    if (builder.count < perEntry && event.type !== EventType.RUN_FINISHED) continue;
    const { threadId: _threadId, runIndex: _runIndex, epoch: _epoch, ...sent } = builder.take()!;
    yield sent;
  }
}

/** What a device sends of it. */
function* messagesOf(run: FilledRun): Generator<SpaceMessage> {
  const { threadId, runId, prev, at } = run;
  const from = { threadId, device: DEVICE };
  const input = { messages: [{ id: `u-${runId}`, role: "user" as const, content: "a question" }] };
  const title = `Thread ${threadId}`;
  const brief: Brief = { title, agentId: "telling", archived: false, pinned: false, createdAt: at, updatedAt: at };
  const begin = { runId, prev, knew: prev, agentId: "telling", startedAt: at, fingerprint: runId, input, title, brief };
  yield { type: "run", ...begin, ...from };
  const chunks = [...chunksOf(run)];
  const last = chunks.pop()!;
  for (const chunk of chunks) yield { type: "events", runId, chunks: [chunk], ...from };
  const ended: Brief = { ...brief, lastStatus: "finished" };
  yield { type: "end", runId, status: "finished", endedAt: at, chunk: last, brief: ended, ...from };
}

/** @returns how many entries it is */
async function fillThread(space: Space, runs: Iterable<FilledRun>): Promise<number> {
  let last = 0;
  let entries = 0;
  for (const run of runs) {
    const thread = await keyOfThread(run.threadId);
    for (const message of messagesOf(run)) {
      last = await added(space.add(thread, encodeMessage(message), { last, id: `${run.runId} ${entries++}` }));
    }
  }
  return entries;
}

const expectedOf = (threads: number, threadId: string, runs: number, events: number): Expected => ({
  threads,
  opened: { threadId, messages: 2 * runs, characters: runs * (events - AROUND) * WORD.length },
});

export interface Filled {
  readonly expected: Expected;
  readonly entries: number;
}

export interface Fill {
  readonly servers: readonly string[];
  readonly space: string;
  /** Events of each run. */
  readonly events: number;
}

/** What a space has that new devices join. */
export const fillCalls = {
  /** @param perEntry see {@link FilledRun} */
  async fillThread({ servers, space: name, events }: Fill, runs: number, perEntry?: number): Promise<Filled> {
    const space = openSpace(servers, name);
    await online(space);
    const threadId = "long";
    const at = Date.now();
    const all = Array.from({ length: runs }, (_, i) => {
      const prev = i === 0 ? null : `run-${i - 1}`;
      return { threadId, runId: `run-${i}`, prev, events, perEntry, at: at + i };
    });
    const entries = await fillThread(space, all);
    await space.close();
    return { expected: expectedOf(1, threadId, runs, events), entries };
  },

  /** Threads of one run each, each a millisecond newer than the one before; the oldest is the one to open. */
  async fillThreads({ servers, space: name, events }: Fill, threads: number): Promise<Filled> {
    const space = openSpace(servers, name);
    await online(space);
    const at = Date.now();
    const numbers = Array.from({ length: threads }, (_, i) => i).values();
    let entries = 0;
    const fillNext = async (): Promise<void> => {
      for (const i of numbers) {
        const run = { threadId: `t-${i}`, runId: `run-${i}`, prev: null, events, perEntry: undefined, at: at + i };
        const count = await fillThread(space, [run]);
        entries += count;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, fillNext));
    await space.close();
    return { expected: expectedOf(threads, "t-0", 1, events), entries };
  },
};
