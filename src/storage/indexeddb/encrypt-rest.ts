import { isSealed } from "../codec.js";
import type { KeyRing } from "../encryption/key-ring.js";
import { answersIn } from "../pending-tool-calls.js";
import { isRecord, isText } from "./checks.js";
import {
  encryptRecords,
  encryptStores,
  fieldOf,
  type Encrypted,
  type PayloadIn,
  type RecordsOf,
} from "./encrypt-records.js";
import {
  placeOfChunk,
  placeOfClosing,
  placeOfFailure,
  placeOfInput,
  placeOfInterrupts,
  placeOfMessage,
  placeOfRequest,
  formerId,
  placeOfResult,
  placeOfState,
  placeOfTitle,
} from "./records.js";
import type { Connection, HeadRecord, RunRecord, RuntimeSchema, WaitingRecord } from "./schema.js";

type Content = "threads" | "runs" | "chunks" | "messages" | "states" | "waiting" | "heads";

/** The results of pending tool calls. */
const resultsIn = (head: HeadRecord): readonly PayloadIn[] =>
  answersIn(head).map(({ toolCallId, token, result }) => ({
    place: placeOfResult(head.threadId, toolCallId),
    stored: result,
    with: (other, stored) => {
      const { pending } = other as HeadRecord;
      if (pending === undefined) return other;
      const calls = pending.calls.map((call) =>
        call.toolCallId === toolCallId && call.token === token ? { ...call, result: stored } : call,
      );
      return { ...other, pending: { ...pending, calls } };
    },
  }));

/** The message of why a waiting run could not be started. */
const failureIn = (row: WaitingRecord): readonly PayloadIn[] =>
  isRecord(row.error)
    ? [
        {
          place: placeOfFailure(row, row.error),
          stored: row.error.message,
          with: (other, stored) => {
            const { error } = other as WaitingRecord;
            return error === undefined ? other : { ...other, error: { ...error, message: stored } };
          },
        },
      ]
    : [];

/** A run of a host without the key, which began before there was one: the host goes on with it, and nothing new. */
const isPlainRun = (run: RunRecord | undefined): boolean => run?.status === "running" && !isSealed(run.input);

/** The digest of a fingerprint in place of it. A digest has no colon. */
const digested =
  (ring: KeyRing) =>
  async (run: RunRecord): Promise<Partial<RunRecord> | undefined> => {
    const { runId, fingerprint } = run;
    if (!isText(fingerprint) || !fingerprint.includes(":") || isPlainRun(run)) return undefined;
    const digest = await ring.codec.digest(fingerprint);
    return { fingerprint: digest, ...(Array.isArray(runId) && { runId: formerId({ ...run, fingerprint: digest }) }) };
  };

const recordsIn = (ring: KeyRing): { readonly [Name in Content]: RecordsOf<RuntimeSchema[Name]["value"]> } => ({
  threads: {
    payloadsIn: (thread) => (thread.title === "" ? [] : fieldOf(thread, "title", placeOfTitle(thread.threadId))),
  },
  runs: {
    payloadsIn: (run) =>
      isPlainRun(run)
        ? []
        : [
            ...fieldOf(run, "input", placeOfInput(run)),
            ...fieldOf(run, "closing", placeOfClosing(run.threadId, run.runIndex)),
          ],
    changesOf: digested(ring),
  },
  chunks: { payloadsIn: (chunk) => fieldOf(chunk, "entries", placeOfChunk(chunk)) },
  messages: { payloadsIn: (message) => fieldOf(message, "message", placeOfMessage(message)) },
  states: {
    payloadsIn: (state) => [
      ...fieldOf(state, "state", placeOfState(state.threadId, state.runIndex)),
      ...fieldOf(state, "interrupts", placeOfInterrupts(state.threadId, state.runIndex)),
    ],
  },
  waiting: {
    payloadsIn: (row) => [
      ...(row.kind === "run" ? fieldOf(row, "request", placeOfRequest(row.threadId, row.runId)) : []),
      ...failureIn(row),
    ],
  },
  heads: { payloadsIn: resultsIn },
});

/** See `encryptRest` of the store. */
export async function encryptRest(connection: Connection, ring: KeyRing, signal?: AbortSignal): Promise<boolean> {
  const records = recordsIn(ring);
  const encrypt = <Name extends Content>(name: Name): Promise<Encrypted> =>
    encryptRecords({ connection, ring, signal }, name, records[name]);
  return encryptStores(ring, [
    // Asked before: what such a run writes meanwhile may be behind.
    async () => ((await hasPlainRun(connection)) ? "later" : "all"),
    ...(Object.keys(records) as Content[]).map((name) => () => encrypt(name)),
  ]);
}

/** Whether a run is live whose host does not encrypt it. */
async function hasPlainRun(connection: Connection): Promise<boolean> {
  return connection.read(["heads", "runs"], async (tx) => {
    const live = await tx.objectStore("heads").index("holder").getAll();
    const runs = await Promise.all(
      live.flatMap((head) =>
        head.live === undefined ? [] : [tx.objectStore("runs").get([head.threadId, head.live.runIndex])],
      ),
    );
    return runs.some(isPlainRun);
  });
}
