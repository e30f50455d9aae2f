import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { Encryption } from "../../../src/storage/encryption/encryption.js";
import { SealedSpace } from "../../../src/sync/sealed/sealed-space.js";
import { SpaceOffline, type SpaceEntry } from "../../../src/sync/space.js";
import { KEYS_THREAD } from "../../../src/sync/thread-key.js";
import { fastKey } from "../encryption/fast-key.js";
import { flipped } from "./hostile-server.js";
import { MemoryServer, MemorySpace } from "./memory-space.js";

/*
 * What an encrypted space lists when it is asked: the last entry of each thread, and the entries of one thread.
 */

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const nothing = new Uint8Array();
const never = new AbortController().signal;

async function all(entries: AsyncIterable<SpaceEntry>): Promise<SpaceEntry[]> {
  const found: SpaceEntry[] = [];
  for await (const entry of entries) found.push(entry);
  return found;
}

let server: MemoryServer;
let below: MemorySpace;
let space: SealedSpace;
let warnings: unknown[];

beforeEach(() => {
  server = new MemoryServer();
  below = new MemorySpace(server);
  warnings = [];
  let kept: unknown;
  let ids = 0;
  space = new SealedSpace({
    space: below,
    name: "",
    encryption: new Encryption({ key: fastKey }),
    store: { keys: async () => kept, setKeys: async (keys: unknown) => void (kept = keys) },
    logger: { warn: (...what) => void warnings.push(what) },
    makeId: () => `${++ids}`,
  });
  onTestFinished(() => space.close());
});

/** Reads to the end of the test, as a device does. Resolves when entries can be added. */
async function begin(): Promise<void> {
  const until = new AbortController();
  const begun = vi.fn();
  const reading = (async () => {
    for await (const frame of space.read(undefined, until.signal)) if (frame.is === "begins") begun();
  })();
  onTestFinished(async () => {
    until.abort();
    await reading;
  });
  await vi.waitFor(() => expect(begun).toHaveBeenCalled());
}

const added = (thread: string, text: string, last: number): Promise<number | undefined> =>
  space.add(thread, bytes(text), { last, id: text });

test("the last entries are opened, all threads are named, that of keys says nothing", async () => {
  await begin();
  const keys = { is: "entry", thread: KEYS_THREAD, seq: 1, body: nothing };
  expect(await all(space.lasts(never))).toEqual([keys]);
  await added("a", "a1", 0);
  await added("a", "a2", 2);
  await added("b", "b1", 0);
  server.add("c", flipped(server.entries.at(-1)!.body, 30), 0, "hostile");
  expect(await all(space.lasts(never))).toEqual([
    keys,
    { is: "entry", thread: "a", seq: 3, body: bytes("a2"), after: 2 },
    { is: "entry", thread: "b", seq: 4, body: bytes("b1"), after: 0 },
    { is: "entry", thread: "c", seq: 5, body: nothing },
  ]);
});

test("an entry that is not whole is named, and nobody is warned of it", async () => {
  await begin();
  const half: SpaceEntry = { is: "entry", thread: "a", seq: 2, body: nothing };
  vi.spyOn(below, "lasts").mockImplementation(async function* () {
    yield half;
  });
  expect(await all(space.lasts(never))).toEqual([half]);
  expect(warnings).toEqual([]);
});

test("the entries of a thread are opened, one that cannot be has an empty body", async () => {
  await begin();
  await added("a", "a1", 0);
  await added("b", "b1", 0);
  server.add("a", server.entries.at(-1)!.body, 2, "hostile");
  await added("a", "a2", 4);
  expect(await all(space.entries("a", never))).toEqual([
    { is: "entry", thread: "a", seq: 2, body: bytes("a1"), after: 0 },
    { is: "entry", thread: "a", seq: 4, body: nothing },
    { is: "entry", thread: "a", seq: 5, body: bytes("a2"), after: 4 },
  ]);
  expect(await all(space.entries("unknown", never))).toEqual([]);
  expect(await all(space.entries(KEYS_THREAD, never))).toEqual([
    { is: "entry", thread: KEYS_THREAD, seq: 1, body: nothing },
  ]);
});

test("before the keys of the log are known, and without a connection, nothing is listed", async () => {
  const lists = () => [all(space.lasts(never)), all(space.entries("a", never))];
  for (const list of lists()) await expect(list).rejects.toThrow(SpaceOffline);
  await begin();
  await added("a", "a1", 0);
  const [ofAll, ofOne] = lists();
  expect((await ofAll!).map(({ thread }) => thread)).toEqual([KEYS_THREAD, "a"]);
  expect(await ofOne).toHaveLength(1);
  below.connect(false);
  for (const list of lists()) await expect(list).rejects.toThrow(SpaceOffline);
});

test("a list that the connection is lost of is SpaceOffline, one whose signal aborts just ends", async () => {
  await begin();
  for (const thread of ["a", "b", "c"]) await added(thread, `${thread}1`, 0);
  const aborted = new AbortController();
  const found: string[] = [];
  for await (const { thread } of space.lasts(aborted.signal)) {
    found.push(thread);
    aborted.abort();
  }
  expect(found).toEqual([KEYS_THREAD]);
  const list = space.lasts(never);
  expect(await list.next()).toMatchObject({ value: { thread: KEYS_THREAD } });
  below.connect(false);
  await expect(list.next()).rejects.toThrow(SpaceOffline);
});
