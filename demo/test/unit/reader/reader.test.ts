import { readFile } from "node:fs/promises";
import { type BaseEvent, EventType } from "@ag-ui/core";
import { marked, type Tokens } from "marked";
import { describe, expect, test } from "vitest";
import { reader } from "../../../reader/reader.js";
import { shapeState, type TableDocumentState, type TextDocumentState } from "../../../reader/state.js";
import { onlyDocument, Thread } from "./support.js";

const sample = (name: string): Promise<string> =>
  readFile(new URL(`../../../samples/${name}`, import.meta.url), "utf8");

/** The texts of the block quotes of an answer, with the place below each. */
function quotesOf(markdown: string): { text: string; place: string }[] {
  const html = (token: Tokens.Generic | undefined): string =>
    (token?.tokens ?? [])
      .map((one) => ("tokens" in one && one.tokens ? html(one) : String((one as Tokens.Text).text)))
      .join("");
  return marked.lexer(markdown).flatMap((token) => {
    if (token.type !== "blockquote") return [];
    const [text, place] = (token.tokens ?? []).filter(({ type }) => type === "paragraph");
    return [{ text: html(text as Tokens.Generic), place: html(place as Tokens.Generic) }];
  });
}

const spaced = (text: string): string => text.replace(/[*_`]/g, "").replace(/\s+/g, " ");

describe("a Markdown document", () => {
  test("is read phase by phase, with an outline and terms of its own", async () => {
    const thread = new Thread();
    const text = await sample("guide-to-lighthouses.md");
    const { steps, state, answer } = await thread.send("", await thread.file("guide.md", text, "text/markdown"));
    expect(steps).toEqual(["Reading", "Outline", "Key terms"]);
    expect(state.progress).toBeNull();
    const document = onlyDocument(state) as TextDocumentState;
    expect(document).toMatchObject({ kind: "text", name: "guide.md", phase: "Done" });
    const lines = text.split("\n");
    expect(document.outline).toHaveLength(lines.filter((line) => /^#{1,6} /.test(line)).length);
    for (const { title, line } of document.outline) expect(lines[line - 1]).toContain(title);
    expect(document.terms.map(({ term }) => term)).toContain("light");
    for (const { title } of document.outline) expect(answer).toContain(title);
  });

  test("code in it is no heading", async () => {
    const thread = new Thread();
    const text =
      "# Real\n\nThis is the one paragraph of the whole document here.\n\n```sh\n# not a heading\n\necho x\n```\n";
    const { state } = await thread.send("", await thread.file("a.md", text, "text/markdown"));
    expect((onlyDocument(state) as TextDocumentState).outline).toEqual([{ title: "Real", level: 1, line: 1 }]);
  });

  test("what it says cannot become Markdown of the answer", async () => {
    const thread = new Thread();
    const evil =
      "# <img src=x> [a](javascript:1)\n\nThe lamp is <script>alert(1)</script> ![x](http://e.org/x) and the lamp burns | all night.\n";
    const { answer } = await thread.send("", await thread.file("<b>.md", evil, "text/markdown"));
    const found = new Set<string>();
    marked.walkTokens(marked.lexer(answer), ({ type }) => void found.add(type));
    expect([...found].filter((type) => ["html", "link", "image", "code", "table"].includes(type))).toEqual([]);
  });
});

describe("a plain text", () => {
  test("gets its outline from lines of capital letters", async () => {
    const thread = new Thread();
    const { state } = await thread.send(
      "",
      await thread.file("relief.txt", await sample("the-last-relief.txt"), "text/plain"),
    );
    expect((onlyDocument(state) as TextDocumentState).outline.map(({ title }) => title)).toEqual([
      "THE LAST RELIEF",
      "WHAT THE ENGINEER SAID",
      "THE NOTEBOOKS",
      "NINE O'CLOCK",
    ]);
  });

  test("pasted into the message, it is a document as well", async () => {
    const thread = new Thread();
    const { state, steps } = await thread.send((await sample("guide-to-lighthouses.md")).slice(0, 6_000));
    expect(onlyDocument(state)).toMatchObject({ name: "Pasted text", mimeType: "text/markdown" });
    expect(steps).toContain("Key terms");
    const { answer } = await thread.send("What stood on the island of Pharos?");
    expect(quotesOf(answer)[0]?.text).toContain("Pharos");
  });
});

describe("a table", () => {
  test("is described column by column", async () => {
    const thread = new Thread();
    const { state, steps, answer } = await thread.send(
      "",
      await thread.file("calls.csv", await sample("harbour-calls.csv"), "text/csv"),
    );
    expect(steps).toEqual(["Reading", "Columns"]);
    const document = onlyDocument(state) as TableDocumentState;
    expect(document.counts).toContainEqual({ name: "rows", value: 500 });
    expect(document.columns.map(({ name, type }) => [name, type])).toEqual([
      ["call_id", "text"],
      ["date", "date"],
      ["harbour", "text"],
      ["ship_type", "text"],
      ["length_m", "number"],
      ["crew", "number"],
      ["cargo_t", "number"],
      ["wind_from", "text"],
      ["wind_bft", "number"],
      ["delay_min", "number"],
      ["fee_eur", "number"],
      ["pilot", "text"],
    ]);
    for (const { numbers, count } of document.columns) {
      if (numbers) expect(numbers.bins.reduce((sum, bin) => sum + bin.count, 0)).toBe(count);
    }
    expect(marked.lexer(answer).filter(({ type }) => type === "table")).toHaveLength(1);
  });

  test("has figures that are right, and stay figures where they are huge", async () => {
    const thread = new Thread();
    const text =
      "n,day,huge,code\n3,2026-02-01,1e308,007\n1,2026-01-01,1e308,8\n,n/a,-,9\n4,2026-03-01,1e308,10\n2,,1e308,\n";
    const { state } = await thread.send("", await thread.file("a.csv", text, "text/csv"));
    const [n, day, huge, code] = (onlyDocument(state) as TableDocumentState).columns;
    expect(n).toMatchObject({
      count: 4,
      missing: 1,
      unique: 4,
      numbers: { min: 1, max: 4, sum: 10, mean: 2.5, median: 2.5 },
    });
    expect(day).toMatchObject({ type: "date", missing: 2, dates: { from: "2026-01-01", to: "2026-03-01" } });
    expect(huge?.numbers?.sum).toBe(Number.MAX_VALUE);
    expect(code?.type).toBe("text");
  });

  test("is searched, and gives its rows", async () => {
    const thread = new Thread();
    await thread.send("", await thread.file("p.csv", "city,what\nBerlin,red lamp\nRome,blue oil\n", "text/csv"));
    const { calls, answer } = await thread.send("oil in which city?");
    expect(calls).toMatchObject([{ name: "search_document", result: { passages: [{ line: 2 }] } }]);
    expect(answer).toContain("| 2 | Rome | blue oil |");
  });
});

describe("a question about a text", () => {
  test("is answered with passages that stand in the document, where it says", async () => {
    const thread = new Thread();
    const text = await sample("guide-to-lighthouses.md");
    await thread.send("", await thread.file("guide.md", text, "text/markdown"));
    const { answer, calls, reasoning, steps } = await thread.send("How does a mercury bath work?");
    expect(steps).toEqual(["Reading", "Searching"]);
    expect(calls).toMatchObject([
      { name: "search_document", args: { document: "guide.md", query: "How does a mercury bath work?" } },
    ]);
    expect(reasoning).toContain("BM25");
    const quotes = quotesOf(answer);
    expect(quotes[0]?.text).toMatch(/mercury/i);
    expect(quotes[0]?.place).toContain("The mercury bath, line");
    const lines = text.split("\n");
    for (const { text: quote, place } of quotes) {
      const line = Number(/line (\d+)/.exec(place)?.[1]);
      expect(spaced(lines.slice(line - 1, line + 1).join(" "))).toContain(quote.slice(0, 30));
      expect(spaced(text)).toContain(quote);
    }
  });

  test("says plainly when there is nothing", async () => {
    const thread = new Thread();
    await thread.send("", await thread.file("a.txt", "The lamp burns oil.\n", "text/plain"));
    const { answer } = await thread.send("Where are the zebras?");
    expect(answer).toBe("I found nothing about “zebras” in “a.txt”. Try another word for it.\n");
  });

  test("takes a near spelling", async () => {
    const thread = new Thread();
    await thread.send("", await thread.file("a.txt", "The lighthouse burns oil.\n", "text/plain"));
    expect(quotesOf((await thread.send("lighthose?")).answer)[0]?.text).toBe("The lighthouse burns oil.");
  });

  test("is put to every document, or to the one that it names", async () => {
    const thread = new Thread();
    const parts = [
      await thread.file("one.txt", "Oil is in one.\n", "text/plain"),
      await thread.file("two.txt", "Oil is in two.\n", "text/plain"),
    ];
    await thread.send("", ...parts);
    expect((await thread.send("oil?")).calls).toHaveLength(2);
    const { calls } = await thread.send("oil in two.txt?");
    expect(calls.map(({ args }) => (args as { document: string }).document)).toEqual(["two.txt"]);
  });

  test("in the message that brings the document is answered before the report", async () => {
    const thread = new Thread();
    const { answer, steps } = await thread.send(
      "What about fog?",
      await thread.file("a.txt", "The lamp burns oil all of the night.\n\nThe bell rings in fog.\n", "text/plain"),
    );
    expect(steps).toEqual(["Reading", "Searching", "Reading", "Outline", "Key terms"]);
    expect(quotesOf(answer)[0]?.text).toBe("The bell rings in fog.");
    expect(answer.indexOf("The bell rings in fog.")).toBeLessThan(answer.indexOf("## a.txt"));
  });

  test("that asks for the report gets the report again", async () => {
    const thread = new Thread();
    await thread.send("", await thread.file("a.txt", "The lamp burns oil.\n", "text/plain"));
    expect((await thread.send("Please summarise the document")).steps).toContain("Key terms");
  });
});

describe("a thread", () => {
  test("without a document gets help", async () => {
    const { answer, state, calls } = await new Thread().send("hello");
    expect(answer).toContain("Drop a file");
    expect(state).toEqual({ documents: {}, progress: null });
    expect(calls).toEqual([]);
  });

  test.each([
    "hello",
    "Hi there!",
    "good morning",
    "Hello Reader, how are you?",
    "thanks",
    "what can you do?",
    "help me",
  ])("that has documents answers “%s” with what the agent can do, and searches nothing", async (greeting) => {
    const thread = new Thread();
    await thread.send("", await thread.file("a.txt", "The lamp burns oil.\n", "text/plain"));
    const { answer, calls } = await thread.send(greeting);
    expect(answer).toContain("Hello, I am Reader");
    expect(calls).toEqual([]);
  });

  test.each(["hello world program", "Who helped the keeper?", "What can you do about fog?"])(
    "searches for “%s”, which only looks like a greeting",
    async (question) => {
      const thread = new Thread();
      await thread.send("", await thread.file("a.txt", "The lamp burns oil.\n", "text/plain"));
      expect((await thread.send(question)).answer).not.toContain("I am Reader");
    },
  );

  test("that gets a greeting with a file reports on the file", async () => {
    const thread = new Thread();
    const { steps, calls } = await thread.send("Hi!", await thread.file("a.txt", "The lamp burns.\n", "text/plain"));
    expect(steps).toContain("Key terms");
    expect(calls).toEqual([]);
  });

  test("whose file is gone is told so, and the others are read", async () => {
    const thread = new Thread();
    const gone = await thread.file("gone.txt", "Some text.\n", "text/plain");
    thread.files.clear();
    const { answer, state } = await thread.send(
      "",
      gone,
      await thread.file("here.txt", "Other text is here.\n", "text/plain"),
    );
    expect(answer).toContain("I cannot read **gone.txt**");
    expect(onlyDocument(state).name).toBe("here.txt");
  });

  test.each([
    ["nothing", undefined],
    ["a list", [1]],
    ["a text", "x"],
    ["documents of another shape", { documents: { constructor: { id: 1 } }, progress: 0.5 }],
    ["half a document", { documents: { ["a".repeat(64)]: { id: "a".repeat(64), kind: "text" } }, progress: null }],
  ])("with a foreign state gets a shaped one: %s", async (_what, state) => {
    const thread = new Thread();
    thread.state = state;
    const { events, state: after } = await thread.send(
      "",
      await thread.file("a.txt", "Some text is here.\n", "text/plain"),
    );
    expect(events.filter(({ type }) => type === EventType.STATE_SNAPSHOT)).toHaveLength(1);
    expect(shapeState(after)).toBeUndefined();
    expect(onlyDocument(after).name).toBe("a.txt");
  });

  test("keeps members of its state that are not Reader's, and sends no snapshot for them", async () => {
    const thread = new Thread();
    thread.state = { documents: {}, progress: null, other: 1 };
    const { events, state } = await thread.send("", await thread.file("a.txt", "Some text is here.\n", "text/plain"));
    expect(events.some(({ type }) => type === EventType.STATE_SNAPSHOT)).toBe(false);
    expect(state).toMatchObject({ other: 1 });
  });
});

/** Runs until an event, aborts, and gives what still came. */
async function afterAbort(thread: Thread, pace: number, at: (event: BaseEvent) => boolean): Promise<BaseEvent[]> {
  const controller = new AbortController();
  const rest: BaseEvent[] = [];
  for await (const event of reader(thread.input(), { signal: controller.signal }, { ...thread.tools(), pace })) {
    if (controller.signal.aborted) rest.push(event);
    else if (at(event)) controller.abort();
  }
  expect(controller.signal.aborted).toBe(true);
  return rest;
}

const working = (event: BaseEvent): boolean =>
  event.type === EventType.STATE_DELTA && JSON.stringify(event.delta).includes('"phase":"Key terms","done":0.');

const paragraph = (i: number): string =>
  `Paragraph number ${i} tells of lamp${i % 997} and of the tower beside harbour${i % 31}.\n\n`;

describe("a stop", () => {
  const long = "The lamp of the tower burns oil through all of the night.\n\n".repeat(30_000);

  async function asked(): Promise<Thread> {
    const thread = new Thread();
    thread.messages.push({ id: "u", role: "user", content: [await thread.file("a.txt", long, "text/plain")] });
    return thread;
  }

  test("in the middle of work ends it within a slice, without an error", async () => {
    expect(await afterAbort(await asked(), 0, working)).toEqual([]);
  });

  test("while text is streamed ends it at the next delta", async () => {
    expect(await afterAbort(await asked(), 0, ({ type }) => type === EventType.TEXT_MESSAGE_CONTENT)).toEqual([]);
  });

  test("does not wait for the pace", async () => {
    const controller = new AbortController();
    const thread = new Thread();
    thread.messages.push({ id: "u", role: "user", content: "hello" });
    const events = reader(thread.input(), { signal: controller.signal }, { ...thread.tools(), pace: 2 ** 30 });
    let event = (await events.next()).value as BaseEvent;
    while (event.type !== EventType.TEXT_MESSAGE_CONTENT) event = (await events.next()).value as BaseEvent;
    const next = events.next();
    controller.abort();
    expect(await next).toEqual({ done: true, value: undefined });
  });

  test("before the start leaves nothing to do", async () => {
    const thread = await asked();
    const events: BaseEvent[] = [];
    for await (const event of reader(thread.input(), { signal: AbortSignal.abort() }, thread.tools()))
      events.push(event);
    expect(events.filter(({ type }) => type === EventType.TEXT_MESSAGE_CONTENT)).toEqual([]);
  });
});

describe("5 MB", () => {
  const MB5 = 5 * 1024 * 1024;

  test("of text are read, searched and kept small in the log", async () => {
    const thread = new Thread();
    const parts: string[] = [];
    let size = 0;
    for (let i = 0; size < MB5 - 200; i++) size += parts[parts.push(paragraph(i)) - 1]?.length ?? 0;
    const { state, events } = await thread.send("", await thread.file("big.txt", parts.join(""), "text/plain"));
    expect(onlyDocument(state)).toMatchObject({ phase: "Done" });
    expect(onlyDocument(state).counts).toContainEqual({ name: "words", value: parts.length * 12 });
    expect(JSON.stringify(events).length).toBeLessThan(500_000);
    expect(quotesOf((await thread.send("lamp500 harbour7")).answer)[0]?.text).toMatch(/lamp500\b/);
  });

  test("of one line without a space are read", async () => {
    const thread = new Thread();
    const { state } = await thread.send("", await thread.file("big.md", "äbc".repeat(MB5 / 4), "text/markdown"));
    expect(onlyDocument(state)).toMatchObject({ phase: "Done" });
  });

  test("of a table are summed", async () => {
    const thread = new Thread();
    const rows = 200_000;
    const text = `city,cents,note\n${Array.from({ length: rows }, (_, i) => `c${i % 7},${i},"some, note"`).join("\n")}\n`;
    const { state } = await thread.send("", await thread.file("big.csv", text, "text/csv"));
    const [, cents] = (onlyDocument(state) as TableDocumentState).columns;
    expect(cents?.numbers).toMatchObject({ sum: (rows * (rows - 1)) / 2, median: (rows - 1) / 2, max: rows - 1 });
  });
});
