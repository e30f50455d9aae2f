import { enforceEvents, transformChunks, verifyEvents } from "@ag-ui/client";
import type { AbstractAgent, BaseEvent, RunAgentInput } from "@ag-ui/client";
import { from, lastValueFrom, Observable, type OperatorFunction } from "rxjs";
import { acceptEvent } from "../../../src/runner/agent/accept.js";
import { runAgent, type PipelineHost } from "../../../src/runner/agent/agent-pipeline.js";
import { LogWriter } from "../../../src/runner/live/log-writer.js";
import { RecordedRun } from "../../../src/runner/history/recorded-run.js";
import { Fold } from "../../../src/run/fold.js";
import { OpenConstructTracker } from "../../../src/run/open-constructs.js";
import { ChunkBuilder } from "../../../src/run/pack.js";
import { generatorAgent, SyncAgent, wordEvents, yieldingAgent } from "./agents.js";
import { PIPELINE_GENERATOR, PIPELINE_SYNC, PIPELINE_YIELDING } from "./stages.js";

/** Events of a chunk where the stream is cut into chunks here; about what a commit takes in from a fast agent. */
const CHUNK = 1_000;

const runOf = (n: number): RunAgentInput => ({
  threadId: "thread",
  runId: "run",
  messages: [],
  tools: [],
  context: [],
  forwardedProps: { n },
  state: {},
});
const place = { threadId: "thread", runIndex: 0, epoch: 1 };
const base = { messages: [], state: {}, interrupts: [] };
const sink: PipelineHost = {
  messages: () => [],
  take: (event) => event,
  next: () => undefined,
  knows: () => false,
  open: () => undefined,
  makeId: () => crypto.randomUUID(),
  said: () => undefined,
  dropped: () => undefined,
};

function drain(source$: Observable<BaseEvent>): Promise<BaseEvent> {
  return lastValueFrom(source$);
}

function through(
  events: readonly BaseEvent[],
  ...operators: OperatorFunction<BaseEvent, BaseEvent>[]
): Promise<unknown> {
  return drain(operators.reduce((source$, operator) => source$.pipe(operator), from(events)));
}

function chunksOf(events: readonly BaseEvent[]): NonNullable<ReturnType<ChunkBuilder["take"]>>[] {
  const builder = new ChunkBuilder(place);
  const chunks: NonNullable<ReturnType<ChunkBuilder["take"]>>[] = [];
  events.forEach((event, i) => {
    builder.add(event, Date.now());
    if (i % CHUNK === CHUNK - 1) chunks.push(builder.take()!);
  });
  const last = builder.take();
  if (last !== undefined) chunks.push(last);
  return chunks;
}

/** Each stage alone, over the same events. */
function stages(n: number): Record<string, () => unknown> {
  const events = [...wordEvents("thread", "run", n)];
  const chunks = chunksOf(events);
  const clone = (agent: AbstractAgent): AbstractAgent => agent.clone() as AbstractAgent;
  return {
    "agent emits, synchronous": () => drain(new SyncAgent().run(runOf(n))),
    "agent emits, async generator (defineAgent)": () => drain(clone(generatorAgent).run(runOf(n))),
    "agent emits, yielding every 10 (defineAgent)": () => drain(clone(yieldingAgent).run(runOf(n))),
    [PIPELINE_SYNC]: () => runAgent(clone(new SyncAgent()), runOf(n), sink),
    [PIPELINE_GENERATOR]: () => runAgent(clone(generatorAgent), runOf(n), sink),
    [PIPELINE_YIELDING]: () => runAgent(clone(yieldingAgent), runOf(n), sink),
    "of it: schema check": () => through(events, enforceEvents()),
    "of it: chunk expansion": () => through(events, transformChunks()),
    "of it: verification": () => through(events, verifyEvents()),
    "accept (own copies, refusals)": () => {
      for (const event of events) acceptEvent(event);
    },
    "arrival times (Date.now)": () => {
      let sum = 0;
      for (const _ of events) sum += Date.now();
      return sum;
    },
    "open constructs": () => {
      const tracker = new OpenConstructTracker(new Set());
      for (const event of events) tracker.note(event);
    },
    "pack (ChunkBuilder)": () => chunksOf(events),
    "log writer, a store that stores nothing": async () => {
      const store = { append: () => Promise.resolve({}) };
      const claim = { ...place, runId: "run", holder: "bench" };
      const writer = new LogWriter(store, claim, new Set(), {
        committed: () => undefined,
        stopRequested: () => undefined,
        reached: () => Promise.resolve(),
        failed: (error) => {
          throw error;
        },
      });
      for (const event of events) writer.add(event, Date.now());
      await writer.drain();
    },
    "fold, single events": () => {
      const fold = new Fold(base);
      for (const event of events) fold.apply(event);
      return String(fold.messages.at(-1)?.content).length;
    },
    [`recorded run, chunks of ${CHUNK}`]: () => {
      const run = new RecordedRun({ ...base, runIndex: -1, runOf: new Map(), addedBy: new Map() }, { messages: [] });
      for (const chunk of chunks) run.applyChunk(chunk);
    },
    [`structured clone, chunks of ${CHUNK}`]: () => {
      for (const chunk of chunks) structuredClone(chunk);
    },
    "structured clone, one chunk": () => {
      const builder = new ChunkBuilder(place);
      for (const event of events) builder.add(event, Date.now());
      return structuredClone(builder.take());
    },
  };
}

onmessage = async ({ data }: MessageEvent<{ n: number; samples: number }>) => {
  const { n, samples } = data;
  const times: Record<string, number[]> = {};
  const all = Object.entries(stages(n));
  // The first round warms up.
  for (let round = 0; round <= samples; round++) {
    for (const [name, work] of all) {
      const begun = performance.now();
      await work();
      if (round > 0) (times[name] ??= []).push(performance.now() - begun);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
  postMessage(times);
};
