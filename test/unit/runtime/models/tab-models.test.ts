import { expect, test, vi } from "vitest";
import { nextTask } from "../../../../src/platform/clock.js";
import { chooseOffer, tabModels } from "../../../../src/runtime/models/tab-models.js";
import {
  all,
  CALL,
  delta,
  errorOf,
  type FakeTab,
  finish,
  forEver,
  saying,
  start,
  Tabs,
  textEnd,
  textOf,
  textStart,
  whole,
} from "./kit.js";

test("a request goes to a visible tab, then to the least busy one, then to the first", () => {
  const hidden = { visible: false, requests: 0 };
  const busy = { visible: true, requests: 2 };
  const first = { visible: true, requests: 1 };
  const second = { visible: true, requests: 1 };
  expect(chooseOffer([hidden, busy, first, second])).toBe(first);
  expect(chooseOffer([hidden, busy])).toBe(busy);
  expect(chooseOffer([hidden])).toBe(hidden);
  expect(chooseOffer([])).toBeUndefined();
});

test("two bundles of one process have the same models", () => {
  expect(tabModels()).toBe(tabModels());
});

test("a tab answers what it is asked", async () => {
  const tabs = new Tabs();
  const tab = tabs.open(() => saying(whole("a", "b")));
  expect(await all(tabs.ask())).toEqual(whole("a", "b"));
  expect(tab.calls).toEqual([CALL]);
});

test("a request waits for a tab, and takes one of its own model", async () => {
  const tabs = new Tabs();
  const answer = all(tabs.ask());
  tabs.open(() => saying(whole("other")), { model: "other" });
  tabs.open(() => saying(whole("mine")));
  expect(textOf(await answer)).toBe("mine");
});

test("where no tab offers the model in time, a request fails and says what to do (L13)", async () => {
  const tabs = new Tabs();
  const failed = errorOf(all(tabs.ask({ waitMs: 700 })));
  await vi.waitFor(() => expect(tabs.clock.waiting).toBeGreaterThan(0));
  tabs.clock.pass(700);
  const { code, message, details } = await failed;
  expect(code).toBe("provider-unavailable");
  expect(message).toMatch(/No tab has offered the model "m" for 700 ms: open a tab/);
  expect(details).toEqual({ model: "m", delivered: false });
});

test("a tab that is gone before it said anything: the next one is asked the same", async () => {
  const tabs = new Tabs();
  const first = tabs.open(async function* (_call, signal) {
    yield start;
    await forEver(signal);
  });
  const answer = all(tabs.ask());
  await vi.waitFor(() => expect(first.calls).toHaveLength(1));
  const second = tabs.open(() => saying(whole("b")));
  first.close();
  expect(await answer).toEqual(whole("b"));
  expect(second.calls).toEqual([CALL]);
});

/** A model that says this much, and then nothing. */
const stuckAfter = (text: string) =>
  async function* (_call: unknown, signal: AbortSignal) {
    yield start;
    yield textStart("x");
    yield delta(text, "x");
    await forEver(signal);
  };

/** An answer that stands at `text`. */
async function standing(tabs: Tabs, text: string) {
  const parts = tabs.ask();
  const came = [];
  while (textOf(came) !== text) came.push((await parts.next()).value!);
  return { parts, came };
}

test("a tab that is gone in the middle: one that offers to continue goes on in the same text", async () => {
  const tabs = new Tabs();
  const first = tabs.open(stuckAfter("One, "), { continues: true });
  const { parts, came } = await standing(tabs, "One, ");
  const repeating = tabs.open(() => saying(whole("One, two.")));
  const second = tabs.open(() => saying(whole("two.")), { continues: true, visible: false });
  first.close();
  came.push(...(await all(parts)));
  expect(came).toEqual([
    start,
    textStart("x"),
    delta("One, ", "x"),
    delta("two.", "x"),
    { type: "text-end", id: "x" },
    finish,
  ]);
  expect(repeating.calls).toEqual([]);
  const said = { role: "assistant", content: [{ type: "text", text: "One, " }] };
  expect(second.calls).toEqual([{ ...CALL, prompt: [...CALL.prompt, said] }]);
});

test("a text that was said to its end is not opened again: what follows is a text of its own", async () => {
  const tabs = new Tabs();
  const first = tabs.open(
    async function* (_call, signal) {
      yield* [textStart(), delta("One."), textEnd()];
      await forEver(signal);
    },
    { continues: true },
  );
  const parts = tabs.ask();
  const came = [];
  while (came.length < 3) came.push((await parts.next()).value!);
  tabs.open(() => saying(whole("Two.")), { continues: true });
  first.close();
  came.push(...(await all(parts)));
  const further = [start, textStart("0-2"), delta("Two.", "0-2"), textEnd("0-2"), finish];
  expect(came).toEqual([textStart(), delta("One."), textEnd(), ...further]);
});

test("a tab that is gone in the middle, and none can go on: the request fails, as one to be run again", async () => {
  const tabs = new Tabs();
  const first = tabs.open(stuckAfter("One, "));
  const { parts } = await standing(tabs, "One, ");
  tabs.open(() => saying(whole("One, two.")));
  first.close();
  const failed = errorOf(all(parts));
  await vi.waitFor(() => expect(tabs.clock.waiting).toBeGreaterThan(0));
  tabs.clock.pass(1_000);
  expect(await failed).toMatchObject({ code: "provider-unavailable", details: { delivered: true } });
});

test("what is no text is not gone on with: a tool call would be made twice", async () => {
  const tabs = new Tabs();
  const first = tabs.open(
    async function* (_call, signal) {
      yield { type: "tool-call", toolCallId: "c", toolName: "pay", input: "{}" };
      await forEver(signal);
    },
    { continues: true },
  );
  const second = tabs.open(() => saying(whole("b")), { continues: true });
  const parts = tabs.ask();
  await parts.next();
  first.close();
  expect(await errorOf(all(parts))).toMatchObject({ code: "provider-unavailable", details: { delivered: true } });
  expect(second.calls).toEqual([]);
});

test("a tab that ends its offer is as one that is gone", async () => {
  const tabs = new Tabs();
  const first = tabs.open(stuckAfter(""));
  const answer = all(tabs.ask());
  await vi.waitFor(() => expect(first.calls).toHaveLength(1));
  tabs.open(() => saying(whole("b")));
  first.port.postMessage("end");
  expect(textOf(await answer)).toBe("b");
});

test("a frozen tab is passed over, until it says something (L14)", async () => {
  const tabs = new Tabs();
  const frozen = tabs.open(() => saying(whole("thawed")));
  frozen.isFrozen = true;
  const hidden = tabs.open(() => saying(whole("hidden")), { visible: false });
  const answer = all(tabs.ask());
  await vi.waitFor(() => expect(tabs.clock.waiting).toBeGreaterThan(0));
  tabs.clock.pass(5_000);
  expect(textOf(await answer)).toBe("hidden");
  // Asked again at once, without waiting for it.
  expect(textOf(await all(tabs.ask()))).toBe("hidden");
  frozen.isFrozen = false;
  frozen.port.postMessage({ type: "visible", visible: true });
  hidden.close();
  expect(textOf(await all(tabs.ask()))).toBe("thawed");
});

test("a tab that freezes while it answers is left after a silence", async () => {
  const tabs = new Tabs();
  const first = tabs.open(stuckAfter("One, "), { continues: true });
  const { parts } = await standing(tabs, "One, ");
  tabs.open(() => saying(whole("two.")), { continues: true });
  first.isFrozen = true;
  const over = new AbortController();
  const rest = all(parts).finally(() => over.abort());
  while (!over.signal.aborted) {
    tabs.clock.pass(5_000);
    for (let task = 0; task < 20; task++) await nextTask();
  }
  expect(textOf(await rest)).toBe("two.");
});

test("a tab that falls silent at each question is asked once, and the request fails (L13)", async () => {
  const tabs = new Tabs();
  const blocked = tabs.open(() => saying(whole("late")));
  blocked.isFrozen = true;
  const failed = errorOf(all(tabs.ask()));
  await vi.waitFor(() => expect(blocked.orders).toBe(1));
  tabs.clock.pass(5_000);
  // A word of it makes it one that can be chosen.
  blocked.port.postMessage({ type: "visible", visible: true });
  for (let task = 0; task < 20; task++) await nextTask();
  expect(blocked.orders).toBe(1);
  tabs.clock.pass(1_000);
  expect(await failed).toMatchObject({ code: "provider-unavailable", details: { delivered: false } });
  expect((await failed).message).toContain('1 of the tabs that offer the model "m" were asked');
});

test("a question that ends each tab ends four of them, not all", async () => {
  const tabs = new Tabs();
  const asked: FakeTab[] = Array.from({ length: 6 }, () => tabs.openRaw(() => asked.find(isLast)!.close()));
  const isLast = (tab: FakeTab): boolean => tab.calls.length > 0 && !tab.gone.signal.aborted;
  expect(await errorOf(all(tabs.ask()))).toMatchObject({ code: "provider-unavailable" });
  expect(asked.filter(({ calls }) => calls.length > 0)).toHaveLength(4);
});

test("a tab that is lost behind the end of its answer is asked for nothing more: the answer would stand twice", async () => {
  const tabs = new Tabs();
  const first = tabs.open(async function* (_call, signal) {
    yield* whole("a");
    await forEver(signal);
  });
  const parts = tabs.ask();
  const came = [];
  while (came.at(-1)?.type !== "finish") came.push((await parts.next()).value!);
  const second = tabs.open(() => saying(whole("b")), { continues: true });
  first.close();
  expect(await all(parts)).toEqual([]);
  expect(second.calls).toEqual([]);
});

test("a model that takes its time is not left: its tab answers", async () => {
  const tabs = new Tabs();
  let goOn = (): void => undefined;
  const tab = tabs.open(async function* () {
    await new Promise<void>((resolve) => (goOn = resolve));
    yield* whole("slow");
  });
  const answer = all(tabs.ask());
  await vi.waitFor(() => expect(tab.calls).toHaveLength(1));
  for (let times = 0; times < 6; times++) {
    await vi.waitFor(() => expect(tabs.clock.waiting).toBeGreaterThan(0));
    for (let task = 0; task < 20; task++) await nextTask();
    tabs.clock.pass(10_000);
  }
  goOn();
  expect(textOf(await answer)).toBe("slow");
  expect(tab.calls).toHaveLength(1);
});

test("who stops reading stops the tab's model", async () => {
  const tabs = new Tabs();
  let stopped = false;
  tabs.open(async function* (_call, signal) {
    yield* [start, textStart(), delta("a")];
    await forEver(signal);
    stopped = true;
  });
  const ended = new AbortController();
  const parts = tabs.ask({ signal: ended.signal });
  await parts.next();
  const rest = all(parts);
  ended.abort(new DOMException("Stopped", "AbortError"));
  await expect(rest).rejects.toThrow("Stopped");
  await vi.waitFor(() => expect(stopped).toBe(true));
});

test("a model's own failure is told, not tried elsewhere", async () => {
  const tabs = new Tabs();
  tabs.open(async function* () {
    yield start;
    throw new TypeError("out of memory");
  });
  const other = tabs.open(() => saying(whole("b")));
  expect((await errorOf(all(tabs.ask()))).message).toContain("out of memory");
  expect(other.calls).toEqual([]);
});

test("a call that cannot cross is told to who made it, and the tab serves the next one", async () => {
  const tabs = new Tabs();
  tabs.open(() => saying(whole("a")));
  await expect(all(tabs.ask({ call: { ...CALL, odd: () => 1 } }))).rejects.toThrow(/could not be cloned/);
  expect(textOf(await all(tabs.ask()))).toBe("a");
});

test("a reader that takes nothing costs a window: the model waits (L14)", async () => {
  const tabs = new Tabs();
  let made = 0;
  tabs.open(async function* () {
    yield* [start, textStart()];
    for (; made < 10_000; made++) yield delta("a");
    yield finish;
  });
  const parts = tabs.ask();
  await parts.next();
  for (let before = -1; before !== made;) {
    before = made;
    for (let task = 0; task < 20; task++) await nextTask();
  }
  expect(made).toBeLessThan(100);
  expect(textOf(await all(parts))).toHaveLength(10_000);
});
