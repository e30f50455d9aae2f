import {
  type RuntimeConnection,
  type ThreadChange,
  type ThreadListQuery,
  ThreadListStore,
  type ThreadSummary,
} from "ag-ui-local-runtime/client";
import { Subject } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { gated } from "../../../../test/unit/runner/kit.js";
import { Threads } from "../../../ui/threads.js";

const threadOf = (n: number): ThreadSummary => ({
  threadId: `t${n}`,
  title: `thread ${n}.`,
  createdAt: 1_000 - n,
  updatedAt: 1_000 - n,
  runCount: 1,
  archived: false,
  pinned: false,
});

/** The lists of a host with 650 threads, the first page of them read. From then on its answers take a task after `letOn`. */
async function lists() {
  const all = Array.from({ length: 650 }, (_, n) => threadOf(n));
  const changes$ = new Subject<ThreadChange>();
  const { gate, letOn: open } = gated();
  // Not before everything that waits for nothing has been done.
  const letOn = (): void => void setTimeout(open);
  let isHeld = false;
  const list = async ({ limit = 50, before, archived = false }: ThreadListQuery): Promise<ThreadSummary[]> => {
    if (isHeld) await gate;
    const from = typeof before === "object" ? all.findIndex(({ threadId }) => threadId === before.threadId) + 1 : 0;
    return archived ? [] : all.slice(from, from + limit);
  };
  const loadMore = Object.getOwnPropertyDescriptor(ThreadListStore.prototype, "loadMore")!.value as () => Promise<void>;
  // Whoever asks on and on without a wait freezes the tab: here it fails instead.
  const asked = vi.spyOn(ThreadListStore.prototype, "loadMore").mockImplementation(function (this: ThreadListStore) {
    if (asked.mock.calls.length > 50) throw new Error("It asks without a wait");
    return loadMore.call(this);
  });
  const runtime = { threads: { list, watch: () => changes$ } } as unknown as RuntimeConnection;
  const threads = new Threads(runtime, () => undefined);
  onTestFinished(() => {
    threads.close();
    vi.restoreAllMocks();
  });
  await vi.waitFor(() => expect(threads.isLoaded && threads.hasMore).toBe(true));
  isHeld = true;
  return { threads, changes$, letOn, titles: () => threads.shown.map(({ title }) => title) };
}

test("a search while another one reads goes on when that has read, and finds what is last", async () => {
  const { threads, letOn, titles } = await lists();
  const searches = [threads.search("thread 6"), threads.search("thread 64"), threads.search("thread 649.")];
  letOn();
  await Promise.all(searches);
  expect(titles()).toEqual(["thread 649."]);
});

test("so does one while the list is read anew", async () => {
  const { threads, changes$, letOn, titles } = await lists();
  changes$.next({ type: "anew" });
  const searching = threads.search("thread 649.");
  letOn();
  await searching;
  expect(titles()).toEqual(["thread 649."]);
});

test("a search that is taken back reads no further", async () => {
  const { threads, letOn } = await lists();
  const searching = threads.search("thread 649.");
  const none = threads.search("");
  letOn();
  await Promise.all([searching, none]);
  expect(threads.hasMore).toBe(true);
});
