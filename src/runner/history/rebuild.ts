import { randomId } from "../../platform/ids.js";
import { RunnerError } from "../../run/errors.js";
import { closingEvents, startedEvent } from "../../run/finalize.js";
import type { ThreadBase } from "../../run/input-plan.js";
import { ChunkBuilder } from "../../run/pack.js";
import type { OpenConstructs } from "../../run/types.js";
import type { PersistedInput, RunRow, RunStore, ThreadHead } from "../../storage/run-store.js";
import { RecordedRun } from "./recorded-run.js";
import { isUnreadable, type RunLog } from "./run-log.js";

/*
 * Runs as their events give them. Loaded when needed: what readers get of a settled run is in the store, except where it
 * is still to be derived or cannot be read.
 */

interface Source {
  readonly log: RunLog;
  readonly baseAt: (head: ThreadHead, runIndex: number) => Promise<ThreadBase>;
}
type Store = Pick<RunStore, "input">;

/** Rebuilds a run from its log, on the base that it started from. */
export async function viewOf(source: Source, store: Store, head: ThreadHead, runIndex: number): Promise<RecordedRun> {
  const { run, view } = await startOf(source, store, head, runIndex);
  for await (const chunk of source.log.chunksOf(run, -1)) view.applyChunk(chunk);
  return view;
}

/**
 * The readable part of a settled run, closed: everything before the first invalid record. Without it nothing could
 * follow the run, and the thread would be wedged.
 *
 * @param input replaces the run's own input; nothing else of the run is read then
 */
async function readablePartOf(
  source: Source,
  store: Store,
  head: ThreadHead,
  runIndex: number,
  input?: PersistedInput,
): Promise<RecordedRun> {
  const { run, view } = await startOf(source, store, head, runIndex, input);
  const { threadId, runId, epoch } = run;
  let open: OpenConstructs | undefined;
  try {
    for (
      let chunk = input === undefined ? await source.log.chunkAfter(run, -1) : undefined;
      chunk !== undefined;
      chunk = await source.log.chunkAfter(run, view.seq)
    ) {
      view.applyChunk(chunk);
      open = chunk.open;
    }
  } catch (error) {
    if (!isUnreadable(error)) throw error;
  }
  const builder = new ChunkBuilder({ threadId, runIndex, epoch, firstSeq: view.seq + 1 });
  const at = run.endedAt ?? run.startedAt;
  if (!view.started) builder.add(startedEvent(threadId, runId), at);
  const status = run.status === "running" ? "broken" : run.status;
  const message = "Part of this run cannot be read";
  for (const event of closingEvents(open, { status, threadId, runId, message, ids: randomId })) builder.add(event, at);
  view.applyChunk(builder.take()!);
  return view;
}

/** A run and its view before its first event. */
async function startOf(
  source: Source,
  store: Store,
  head: ThreadHead,
  runIndex: number,
  instead?: PersistedInput,
): Promise<{ readonly run: RunRow; readonly view: RecordedRun }> {
  const run = await source.log.run(head, runIndex);
  const input = instead ?? (await store.input(head.threadId, runIndex));
  if (input === undefined) {
    throw new RunnerError("corrupt-record", { threadId: head.threadId, runIndex, store: "runs" });
  }
  return { run, view: new RecordedRun(await source.baseAt(head, run.prevRunIndex ?? -1), input) };
}

/** Reads as much of a settled run as is readable and as `use` accepts. */
export async function readAsFar<T>(
  source: Source,
  store: Store,
  head: ThreadHead,
  runIndex: number,
  use: (view: RecordedRun) => Promise<T>,
): Promise<T> {
  const tries = [
    () => viewOf(source, store, head, runIndex),
    () => readablePartOf(source, store, head, runIndex),
    () => readablePartOf(source, store, head, runIndex, { messages: [] }),
  ];
  let failed: unknown;
  for (const read of tries) {
    try {
      return await use(await read());
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      failed = error;
    }
  }
  throw failed;
}
