import { equalJson } from "../../run/json.js";
import { pendingIn } from "../pending-tool-calls.js";
import { isSealed, type PayloadPlace } from "../codec.js";
import type { KeyRing } from "../encryption/key-ring.js";
import { isRecord, isText } from "./checks.js";
import { quietly } from "./database-connection.js";
import {
  placeOfChunk,
  placeOfClosing,
  placeOfInput,
  placeOfInterrupts,
  placeOfMessage,
  placeOfRequest,
  placeOfResult,
  placeOfState,
  placeOfTitle,
} from "./records.js";
import type { Connection, RunRecord, RuntimeSchema } from "./schema.js";

/*
 * Encrypts what was stored before the database had a key, or before its data key was changed: record by record, each only
 * if it is still as it was read. It can be cut off at any point: the next host starts over, and passes what is done.
 */

/** Records read and encrypted at once. */
const PIECE = 64;

type Content = "threads" | "runs" | "chunks" | "messages" | "states" | "waiting";
type AnyRecord = RuntimeSchema[Content]["value"];
type Fields = Readonly<Record<string, PayloadPlace>>;

/** The payloads of a record, and their places. */
const FIELDS: { readonly [Name in Content]: (record: RuntimeSchema[Name]["value"]) => Fields } = {
  threads: ({ threadId, title }) => (title === "" ? {} : { title: placeOfTitle(threadId) }),
  runs: (run) => ({ input: placeOfInput(run), closing: placeOfClosing(run.threadId, run.runIndex) }),
  chunks: (chunk) => ({ entries: placeOfChunk(chunk) }),
  messages: (message) => ({ message: placeOfMessage(message) }),
  states: ({ threadId, runIndex }) => ({
    state: placeOfState(threadId, runIndex),
    interrupts: placeOfInterrupts(threadId, runIndex),
  }),
  waiting: ({ threadId, runId, kind }): Fields => (kind === "run" ? { request: placeOfRequest(threadId, runId) } : {}),
};

/** @param signal stops it after the current piece */
export async function encryptRest(connection: Connection, ring: KeyRing, signal?: AbortSignal): Promise<void> {
  if (!(await ring.isBehind())) return;
  for (const store of Object.keys(FIELDS) as Content[]) {
    if (!(await encryptStore(connection, ring, store, signal))) return;
  }
  await encryptResults(connection, ring);
  // A host without the key may go on with a run that it began before; nothing new is begun there.
  if (!(await hasPlainRun(connection))) await ring.caughtUp();
}

/** @returns false if it was stopped */
async function encryptStore(
  connection: Connection,
  ring: KeyRing,
  store: Content,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  for (let after: IDBValidKey | undefined; ;) {
    if (signal?.aborted === true) return false;
    const range = after === undefined ? undefined : IDBKeyRange.lowerBound(after, true);
    const [keys, records] = await connection.read([store], (tx) =>
      Promise.all([tx.objectStore(store).getAllKeys(range, PIECE), tx.objectStore(store).getAll(range, PIECE)]),
    );
    for (const [at, key] of keys.entries()) {
      const record = records[at];
      if (isRecord(record)) await encryptRecord(connection, ring, store, key, record as unknown as AnyRecord);
    }
    if (keys.length < PIECE) return true;
    after = keys.at(-1);
  }
}

/** One that cannot be read is left as it is. */
async function encryptRecord(
  connection: Connection,
  ring: KeyRing,
  store: Content,
  key: RuntimeSchema[Content]["key"],
  read: AnyRecord,
): Promise<void> {
  const fieldsOf = FIELDS[store] as (record: AnyRecord) => Fields;
  const before = payloadsOf(read);
  const after: Record<string, unknown> = {};
  const named = store === "runs" ? await withDigest(ring, read as RunRecord) : {};
  // Of a run, where there is any.
  const next = { ...read, ...named } as AnyRecord;
  try {
    const places = fieldsOf(next);
    for (const [field, place] of Object.entries(fieldsOf(read))) {
      const stored = before[field];
      const isDone = stored === undefined || (await ring.isCurrent(stored));
      if (isDone && !("fingerprint" in named)) continue;
      if (stored === undefined) continue;
      const value = isSealed(stored) ? await ring.codec.decode(stored, place) : stored;
      after[field] = await ring.codec.encode(value, places[field]!);
    }
  } catch {
    return;
  }
  if (Object.keys(after).length === 0) return;
  await connection.write([store], "relaxed", async (tx) => {
    const now = await tx.objectStore(store).get(key as never);
    if (!isRecord(now)) return;
    const places = fieldsOf(now as unknown as AnyRecord);
    const isSame = Object.entries(fieldsOf(read)).every(
      ([field, place]) => equalJson(place, places[field]) && isSamePayload(before[field], payloadsOf(now)[field]),
    );
    if (isSame) quietly(tx.objectStore(store).put({ ...now, ...named, ...after } as never));
  });
}

/** The results of pending tool calls, which are in the heads. */
async function encryptResults(connection: Connection, ring: KeyRing): Promise<void> {
  const heads = await connection.read(["heads"], (tx) => tx.objectStore("heads").getAll());
  for (const head of heads) {
    for (const { toolCallId, status, token, result } of pendingIn(head)?.calls ?? []) {
      if (status !== "answered" || (await ring.isCurrent(result))) continue;
      const place = placeOfResult(head.threadId, toolCallId);
      const value = isSealed(result) ? await ring.codec.decode(result, place).catch(() => undefined) : result;
      if (value === undefined) continue;
      const encrypted = await ring.codec.encode(value, place);
      await connection.write(["heads"], "relaxed", async (tx) => {
        const now = await tx.objectStore("heads").get(head.threadId);
        const pending = pendingIn(now);
        if (now === undefined || pending === undefined) return;
        const calls = pending.calls.map((call) =>
          call.toolCallId === toolCallId && call.token === token ? { ...call, result: encrypted } : call,
        );
        quietly(tx.objectStore("heads").put({ ...now, pending: { ...pending, calls } }));
      });
    }
  }
}

const payloadsOf = (record: object): Readonly<Record<string, unknown>> => record as Readonly<Record<string, unknown>>;

function isSamePayload(one: unknown, other: unknown): boolean {
  if (!(one instanceof Uint8Array) || !(other instanceof Uint8Array)) return equalJson(one, other);
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}

/** The digest of a fingerprint in place of it. A digest has no colon. */
async function withDigest(ring: KeyRing, { runId, fingerprint }: RunRecord): Promise<Partial<RunRecord>> {
  if (!isText(fingerprint) || !fingerprint.includes(":")) return {};
  const digest = await ring.codec.digest(fingerprint);
  return { fingerprint: digest, ...(Array.isArray(runId) && { runId: [runId[0], digest] as [string, string] }) };
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
    return runs.some((run) => run !== undefined && !isSealed(run.input));
  });
}
