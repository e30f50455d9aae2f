import type { Message } from "@ag-ui/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { pageOf } from "../../../src/run/message-page.js";
import { History } from "../../../src/runner/history/history.js";
import type { Derived, MessageRow, RunStore, StoredMessagePage } from "../../../src/storage/run-store.js";
import { times } from "../property.js";
import { claimed, settlement } from "./kit.js";

/** What one run of a random thread does. Few ids, so that messages are replaced, doubled and put behind one another. */
interface Step {
  readonly rows: readonly { readonly id: number; readonly after: number | undefined }[];
  readonly rewritten: boolean;
  /** The run that it continues, as a part of those that there are. Mostly the last one. */
  readonly back: number;
  readonly cut: boolean;
}

const idOf = (n: number): string => `m${n}`;

/** Some of them often. */
const someId = fc.oneof(fc.nat(24), fc.nat(3));

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    rows: fc.array(fc.record({ id: someId, after: fc.option(someId, { nil: undefined, freq: 2 }) }), { maxLength: 6 }),
    rewritten: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    back: fc.integer({ min: 0, max: 19 }).map((n) => (n < 3 ? n : 0)),
    cut: fc.integer({ min: 0, max: 19 }).map((n) => n === 0),
  }),
  { minLength: 1, maxLength: 14 },
);

let written = 0;

const rowOf = ({ id, after }: Step["rows"][number]): MessageRow => ({
  message: { id: idOf(id), role: "assistant", content: `text ${++written}` },
  ...(after !== undefined && { after: idOf(after) }),
});

/** A run of thread `t` that continues the path, or the run `back` runs before its end, and leaves these rows. */
export async function leaving(
  store: RunStore,
  messages: readonly MessageRow[],
  { rewritten = false, back = 0 }: { readonly rewritten?: boolean; readonly back?: number } = {},
): Promise<void> {
  const head = await store.head("t");
  const end = head?.activeRunIndex ?? -1;
  const prev = Math.max(head?.first ?? 0, end - back);
  const claim = await claimed(store, "t", `r${head?.runCount ?? 0}`, {
    base: head,
    prevRunIndex: end < 0 ? null : prev,
  });
  const derived: Derived = { messages, rewritten, state: {}, interrupts: [] };
  await store.settle(claim, settlement(claim, 0, { derived }));
}

async function grow(store: RunStore, all: readonly Step[]): Promise<void> {
  for (const { rows, rewritten, back, cut } of all) {
    await leaving(store, rows.map(rowOf), { rewritten, back });
    const head = (await store.head("t"))!;
    if (!cut) continue;
    const { messages, state, interrupts } = await new History(store).baseAt(head, head.activeRunIndex);
    await store.cut("t", head.epoch, { runIndex: head.activeRunIndex, messages, state, interrupts });
  }
}

/** All pages of the thread at the end of run `upTo`, from the last to the first. */
async function pagesOf(store: RunStore, upTo: number, limit: number): Promise<StoredMessagePage[]> {
  const head = (await store.head("t"))!;
  const path = head.branched === true ? await new History(store).log.pathTo(head, upTo) : undefined;
  const pages: StoredMessagePage[] = [];
  for (let before: string | undefined; ; before = pages.at(-1)!.messages[0]!.id) {
    const page = await store.messagePage("t", upTo, path, { before, limit });
    if (page === undefined) throw new Error(`no message ${before}`);
    pages.push(page);
    if (!page.earlier) return pages;
    // No page makes no way to the first message.
    if (pages.length > 200) throw new Error("there is no end of pages");
  }
}

const joined = (pages: readonly StoredMessagePage[]): Message[] =>
  pages.toReversed().flatMap(({ messages }) => messages);

/** The law of pages, for any store. */
export function describeMessagePages(name: string, makeStore: () => RunStore, runs = 150): void {
  describe(name, () => {
    test("pages of whatever runs left are together all messages, each as long as it may be (L2)", async () => {
      await fc.assert(
        fc.asyncProperty(steps, fc.integer({ min: 1, max: 7 }), fc.nat(20), async (all, limit, upTo) => {
          const store = makeStore();
          await grow(store, all);
          const head = (await store.head("t"))!;
          const history = new History(store);
          const on = [...(await history.log.pathTo(head, head.activeRunIndex))].filter((at) => at >= (head.first ?? 0));
          // Its end and, as while a run is live, a run before that.
          for (const runIndex of [head.activeRunIndex, on[upTo % on.length]!]) {
            const { messages } = await history.baseAt(head, runIndex);
            const pages = await pagesOf(store, runIndex, limit);
            expect(joined(pages)).toEqual(messages);
            let before: string | undefined;
            for (const page of pages) {
              expect(page).toEqual(pageOf(messages, before, limit));
              before = page.messages[0]?.id;
            }
          }
          await store.close();
        }),
        times(runs),
      );
    });

    test("a page before a message that is not there is none; a thread without messages has an empty one", async () => {
      const store = makeStore();
      expect(await store.messagePage("t", -1, undefined, { before: undefined, limit: 2 })).toEqual({
        messages: [],
        earlier: false,
      });
      await leaving(store, []);
      expect(await store.messagePage("t", 0, undefined, { before: undefined, limit: 2 })).toEqual({
        messages: [],
        earlier: false,
      });
      await leaving(store, [rowOf({ id: 1, after: undefined })]);
      await leaving(store, [rowOf({ id: 2, after: undefined })], { rewritten: true });
      for (const before of ["m1", "m3"])
        expect(await store.messagePage("t", 2, undefined, { before, limit: 2 })).toBeUndefined();
    });

    test("what a run after the path's end says of a message is not in the page", async () => {
      const store = makeStore();
      await leaving(store, [rowOf({ id: 1, after: undefined })]);
      const { messages } = (await store.messagePage("t", 0, undefined, { before: undefined, limit: 9 }))!;
      for (let n = 0; n < 6; n++) await leaving(store, [rowOf({ id: 1, after: undefined })]);
      expect(await store.messagePage("t", 0, undefined, { before: undefined, limit: 9 })).toEqual({
        messages,
        earlier: false,
      });
      const now = (await store.messagePage("t", 6, undefined, { before: undefined, limit: 9 }))!;
      expect(now.messages).toMatchObject([{ id: "m1", content: `text ${written}` }]);
    });

    test("a page that is handed out is nobody's own", async () => {
      const store = makeStore();
      await leaving(store, [rowOf({ id: 1, after: undefined })]);
      const read = async () => (await store.messagePage("t", 0, undefined, { before: undefined, limit: 1 }))!;
      const [message] = (await read()).messages;
      message!.content = "changed";
      expect((await read()).messages[0]!.content).not.toBe("changed");
    });
  });
}
