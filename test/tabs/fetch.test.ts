import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import type { Tab } from "./driver/browser.js";
import { useBrowser } from "./driver/scripted.js";

const given = useBrowser();
let databases = 0;
let worker: string;
let tabs: Tab[] = [];
beforeEach(() => {
  worker = `fetch-${process.pid}-${databases++}#host`;
});
afterEach(async () => {
  await Promise.allSettled(tabs.map((tab) => tab.close()));
  tabs = [];
});

/** Opens test/tabs/pages/fetch.html. */
async function open(way: string, more = ""): Promise<Tab> {
  const url = `${inject("pages")}fetch.html?way=${way}&worker=${encodeURIComponent(worker)}${more}`;
  const tab = await given.browser.newTab(url);
  tabs.push(tab);
  await tab.waitFor(() => "fetching" in window && window.fetching.ready);
  return tab;
}

const push = (tab: Tab, id: string, body: string) =>
  tab.evaluate((key, text) => window.fetching.api(`/push?id=${key}`, { method: "POST", body: text }), id, body);
const next = (tab: Tab, id: string) => tab.evaluate((key) => window.fetching.next(key), id);
/** How the host sees the request. */
const state = async (tab: Tab, id: string): Promise<unknown> => {
  const answer = await tab.evaluate((key) => window.fetching.api(`/state?id=${key}`), id);
  return typeof answer === "string" ? answer : JSON.parse(answer.text);
};

/** Waits until the host has seen the request's end. */
const waitForAbort = (tab: Tab, id: string) =>
  tab.waitFor(async (key) => {
    const answer = await window.fetching.api(`/state?id=${key}`);
    return typeof answer !== "string" && (JSON.parse(answer.text) as { aborted: boolean }).aborted;
  }, id);

/** A front end's list of the messages of one thread, and what it does with it. */
class Chat {
  messages: { readonly id: string; readonly role: string; readonly content: string }[] = [];

  constructor(private readonly tab: Tab) {}

  /** Says something new after what it has. */
  async say(runId: string): Promise<void> {
    this.messages.push({ id: runId, role: "user", content: `says ${runId}` });
    await this.post("run", runId);
    this.messages.push({ id: `${runId}-a`, role: "assistant", content: "answer" });
  }

  /** Takes the thread as it is now. */
  async connect(): Promise<void> {
    this.messages = [];
    const text = await this.post("connect", "connect");
    const snapshots = text.split("\n").filter((line) => line.includes('"MESSAGES_SNAPSHOT"'));
    const last = snapshots.at(-1)!.replace(/^data: /, "");
    this.messages = (JSON.parse(last) as Pick<Chat, "messages">).messages;
  }

  /** Ids of the messages on the thread's path. */
  async path(): Promise<string[]> {
    const answer = await this.tab.evaluate(() => window.fetching.api("/threads/t/messages"));
    if (typeof answer === "string") throw new Error(answer);
    return (JSON.parse(answer.text) as Pick<Chat, "messages">).messages.map(({ id }) => id);
  }

  private async post(route: string, runId: string): Promise<string> {
    const rest = { state: {}, tools: [], context: [], forwardedProps: {}, protocolVersion: "1.0" };
    const body = JSON.stringify({ threadId: "t", runId, messages: this.messages, ...rest });
    const answer = await this.tab.evaluate(
      (to, sent) =>
        window.fetching.api(`/agent/answerer/${to}`, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: sent,
        }),
      route,
      body,
    );
    expect(answer).toMatchObject({ status: 200, text: expect.stringContaining("RUN_FINISHED") });
    return (answer as { text: string }).text;
  }
}

async function endHost(tab: Tab): Promise<void> {
  if (given.browser.engine !== "chromium") return tab.evaluate(() => window.fetching.endHost());
  expect(await given.browser.endSharedWorkers(worker)).toBe(1);
}

describe.each(["install", "service-worker"])("fetch, by way of %s,", (way) => {
  test("is answered by the host, with method, headers and body", async () => {
    const tab = await open(way);
    const answer = await tab.evaluate(() =>
      window.fetching.api("/echo", { method: "POST", headers: { "x-own": "1" }, body: "héllo" }),
    );
    expect(answer).toEqual({ status: 200, text: JSON.stringify({ method: "POST", own: "1", text: "héllo" }) });
    expect(await tab.evaluate(() => window.fetching.api("/nothing"))).toMatchObject({ status: 404 });
  });

  test("gives an answer piece by piece, while the host makes it", async () => {
    const tab = await open(way);
    expect(await tab.evaluate(() => window.fetching.open("a", "zero"))).toBe(200);
    expect(await next(tab, "a")).toBe("zero");
    for (const piece of ["one", "two", "three"]) {
      await push(tab, "a", piece);
      expect(await next(tab, "a")).toBe(piece);
    }
    await tab.evaluate(() => window.fetching.api("/end?id=a", { method: "POST" }));
    expect(await next(tab, "a")).toBe("end");
  });

  test("gives an answer of 20 MB whole", async () => {
    const tab = await open(way);
    const size = await tab.evaluate(async () => {
      const response = await fetch("/api/agents/bytes?n=20000000");
      const bytes = new Uint8Array(await response.arrayBuffer());
      return bytes.every((byte) => byte === 7) ? bytes.byteLength : -1;
    });
    expect(size).toBe(20_000_000);
  });

  test("that is aborted in the middle of an answer ends the request in the host", async () => {
    const tab = await open(way);
    await tab.evaluate(() => window.fetching.open("a", "one"));
    expect(await next(tab, "a")).toBe("one");
    expect(await state(tab, "a")).toEqual({ aborted: false, cancelled: false });
    await tab.evaluate(() => window.fetching.abort("a"));
    expect(await next(tab, "a")).toBe("AbortError");
    await waitForAbort(tab, "a");
    expect(await state(tab, "a")).toEqual({ aborted: true, cancelled: true });
  });

  test("that is read no further ends the request in the host", async () => {
    const tab = await open(way);
    await tab.evaluate(() => window.fetching.open("a", "one"));
    expect(await next(tab, "a")).toBe("one");
    await tab.evaluate(() => window.fetching.cancel("a"));
    // Firefox tells a service worker with the next bytes.
    await tab.waitFor(async () => {
      await window.fetching.api("/push?id=a", { method: "POST", body: "more" });
      const answer = await window.fetching.api("/state?id=a");
      return typeof answer !== "string" && (JSON.parse(answer.text) as { aborted: boolean }).aborted;
    });
  });

  test("that is aborted before its answer ends the request in the host", async () => {
    const tab = await open(way);
    await tab.evaluate(() => window.fetching.begun("a"));
    // Answered behind it, by the same host.
    await tab.evaluate(() => window.fetching.api("/echo"));
    await tab.evaluate(() => window.fetching.abort("a"));
    await tab.waitFor(() => window.fetching.outcomes["a"] === "AbortError");
    // Neither browser tells a service worker before there is an answer whose body it can cancel.
    if (way === "service-worker") {
      await tab.evaluate(() => window.fetching.api("/answer?id=a", { method: "POST" }));
      await push(tab, "a", "one");
    }
    await waitForAbort(tab, "a");
  });

  test("whose host dies in the middle fails, and the next one answers (L13)", async () => {
    const tab = await open(way);
    await tab.evaluate(() => window.fetching.open("a", "one"));
    expect(await next(tab, "a")).toBe("one");
    await endHost(tab);
    // A page is told of a service worker's failed body as of a network's.
    expect(await next(tab, "a")).toMatch(way === "install" ? "RunnerError host-lost" : /TypeError|AbortError/);
    expect(await tab.evaluate(() => window.fetching.api("/echo"))).toMatchObject({ status: 200 });
    expect(await state(tab, "a")).toEqual({ aborted: false, cancelled: false });
  });

  test("whose host dies before it answers is told (L13)", async () => {
    const tab = await open(way);
    await tab.evaluate(() => window.fetching.begun("a"));
    await tab.evaluate(() => window.fetching.api("/echo"));
    await endHost(tab);
    await tab.waitFor(() => window.fetching.outcomes["a"] !== "pending");
    expect(await tab.evaluate(() => window.fetching.outcomes["a"])).toMatch(
      way === "install" ? "RunnerError host-lost" : /^502 .*"host-lost"/,
    );
  });

  test("of two pages with lists of messages that are stale takes no turn from the path, but what a page cuts (L20)", async () => {
    const [a, b] = [new Chat(await open(way)), new Chat(await open(way))];
    await takeTurns(a, b);
  });

  test("of other addresses is left alone, and all of it once it is undone", async () => {
    const tab = await open(way);
    const page = await tab.evaluate(() => window.fetching.ask(location.href));
    expect(page).toMatchObject({ status: 200, text: expect.stringContaining("A front end that calls fetch") });
    await tab.evaluate(() => window.fetching.undo());
    expect(await tab.evaluate(() => window.fetching.isNative)).toBe(true);
    const answer = await tab.evaluate(() => window.fetching.api("/echo", { method: "POST", body: "x" }));
    // The dev server knows nothing of it; the service worker finds nobody.
    if (way === "install") expect(answer).not.toMatchObject({ text: expect.stringContaining('"own"') });
    else expect(answer).toMatchObject({ status: 503, text: expect.stringContaining('"no-host"') });
  });
});

/** @param a and `b` show one thread, and are told nothing of what the other one does */
async function takeTurns(a: Chat, b: Chat): Promise<void> {
  await a.say("one");
  await b.connect();
  await b.say("two");
  await a.say("three");
  await b.say("four");
  const all = ["one", "one-a", "two", "two-a", "three", "three-a", "four", "four-a"];
  expect(await a.path()).toEqual(all);
  // What it was given, and does not send any more, it has cut.
  await a.connect();
  expect(a.messages.map(({ id }) => id)).toEqual(all);
  a.messages = a.messages.slice(0, 6);
  await a.say("five");
  expect(await b.path()).toEqual([...all.slice(0, 6), "five", "five-a"]);
  // The other one has not cut what it never had.
  await b.say("six");
  expect((await b.path()).slice(6)).toEqual(expect.arrayContaining(["five", "five-a", "six", "six-a"]));
}

describe("a service worker", () => {
  test("tells pages apart that have no runtime of their own: none takes a turn of the other one from the path (L20)", async () => {
    const [a, b] = [new Chat(await open("service-worker", "&none")), new Chat(await open("service-worker", "&none"))];
    await open("service-worker");
    await takeTurns(a, b);
  });

  test("answers 503 where no page has a runtime", async () => {
    const tab = await open("service-worker", "&none");
    expect(await tab.evaluate(() => window.fetching.api("/echo"))).toMatchObject({
      status: 503,
      text: expect.stringContaining('"no-host"'),
    });
  });

  test("asks another tab where the page that asks has no runtime", async () => {
    const tab = await open("service-worker", "&none");
    await open("service-worker");
    expect(await tab.evaluate(() => window.fetching.api("/echo"))).toMatchObject({ status: 200 });
  });

  test("goes on with an answer whose tab is closed, as long as the host lives", async () => {
    const tab = await open("service-worker", "&none");
    const hosting = await open("service-worker");
    await tab.evaluate(() => window.fetching.open("a", "one"));
    expect(await next(tab, "a")).toBe("one");
    // Keeps the host alive.
    const other = await open("service-worker");
    expect(await state(other, "a")).toEqual({ aborted: false, cancelled: false });
    await hosting.close();
    await push(other, "a", "two");
    expect(await next(tab, "a")).toBe("two");
  });

  test("ends the request of a tab that is closed (L14)", async () => {
    const asking = await open("service-worker");
    const other = await open("service-worker");
    await asking.evaluate(() => window.fetching.open("a", "one"));
    expect(await next(asking, "a")).toBe("one");
    await asking.close();
    await waitForAbort(other, "a");
  });
});
