import { readFile } from "node:fs/promises";
import { type BaseEvent, EventType } from "@ag-ui/core";
import { marked, type Tokens } from "marked";
import { describe, expect, test } from "vitest";
import { reader } from "../../../reader/reader.js";
import {
  isReaderState,
  readerStateOf,
  type TableDocumentState,
  type TextDocumentState,
} from "../../../reader/state.js";
import { onlyDocument, stateAfter, Thread } from "./support.js";

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
  test("is read phase by phase, with an outline, terms and sentences of its own", async () => {
    const thread = new Thread();
    const text = await sample("guide-to-lighthouses.md");
    const { steps, state, answer, reasoning } = await thread.send(
      "",
      await thread.file("guide.md", text, "text/markdown"),
    );
    expect(steps).toEqual(["Reading", "Outline", "Key terms", "Key sentences"]);
    expect(state.progress).toBeNull();
    const document = onlyDocument(state) as TextDocumentState;
    expect(document).toMatchObject({ kind: "text", name: "guide.md", phase: "Done", done: 1, outlineFrom: "headings" });

    const lines = text.split("\n");
    expect(document.outline).toHaveLength(lines.filter((line) => /^#{1,6} /.test(line)).length);
    for (const { title, line } of document.outline) expect(lines[line - 1]).toContain(title);
    expect(document.terms.map(({ term }) => term)).toContain("light");
    for (const { text: sentence, line } of document.sentences) {
      expect(spaced(text)).toContain(sentence);
      expect(spaced(lines[line - 1] ?? "")).toContain(sentence.slice(0, 20));
    }
    expect(quotesOf(answer).map((quote) => quote.text)).toEqual(document.sentences.map((sentence) => sentence.text));
    expect(reasoning).toContain("tf-idf");
  });

  test("code in it is neither heading nor sentence", async () => {
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
  test("gets its outline from lines that look like titles", async () => {
    const thread = new Thread();
    const { state } = await thread.send(
      "",
      await thread.file("relief.txt", await sample("the-last-relief.txt"), "text/plain"),
    );
    const document = onlyDocument(state) as TextDocumentState;
    expect(document.outlineFrom).toBe("guessed titles");
    expect(document.outline.map(({ title }) => title)).toEqual([
      "THE LAST RELIEF",
      "WHAT THE ENGINEER SAID",
      "THE NOTEBOOKS",
      "NINE O'CLOCK",
    ]);
  });

  test("without titles, from how its paragraphs begin", async () => {
    const thread = new Thread();
    const text =
      "The first paragraph is about whales and about what they eat. It goes on for a while.\n\nThe second one is about ships, and why they float when they are made of iron. So it is.\n";
    const { state } = await thread.send("", await thread.file("a.txt", text, "text/plain"));
    expect(onlyDocument(state)).toMatchObject({
      outlineFrom: "leading sentences",
      outline: [{ line: 1, title: "The first paragraph is about whales and about what they eat." }, { line: 3 }],
    });
  });

  test("pasted into the message, it is a document as well", async () => {
    const thread = new Thread();
    const { state, steps } = await thread.send((await sample("guide-to-lighthouses.md")).slice(0, 6_000));
    expect(onlyDocument(state)).toMatchObject({ name: "Pasted text", mimeType: "text/markdown" });
    expect(steps).toContain("Key sentences");
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
    expect(steps).toEqual(["Reading", "Columns", "Statistics"]);
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
    expect(marked.lexer(answer).filter(({ type }) => type === "table")).toHaveLength(3);
  });

  test("is asked, and calculates from all rows", async () => {
    const thread = new Thread();
    const text = await sample("harbour-calls.csv");
    await thread.send("", await thread.file("calls.csv", text, "text/csv"));
    const rows = text
      .trim()
      .split("\n")
      .slice(1)
      .map((row) => row.split(","));
    const ferries = rows.filter((row) => row[3] === "ferry");
    const { calls, answer, steps } = await thread.send("how many rows where ship type is ferry");
    expect(calls).toEqual([
      {
        name: "query_table",
        args: {
          document: "calls.csv",
          operation: "count",
          where: [{ column: "ship_type", comparison: "=", value: "ferry" }],
        },
        result: { matched: ferries.length, skipped: 0, groups: [{ value: ferries.length, rows: ferries.length }] },
      },
    ]);
    expect(answer).toContain(`| ${ferries.length} |`);
    expect(steps).toContain("Calculating");
  });

  test("is searched where a question is not one to calculate", async () => {
    const thread = new Thread();
    await thread.send("", await thread.file("p.csv", "city,what\nBerlin,red lamp\nRome,blue oil\n", "text/csv"));
    const { calls, answer } = await thread.send("oil in which city?");
    expect(calls).toMatchObject([{ name: "search_document", result: { found: 1, passages: [{ row: 2 }] } }]);
    expect(answer).toContain("| 2 | Rome | blue oil |");
  });

  test("of a list of objects in JSON", async () => {
    const thread = new Thread();
    const { state } = await thread.send("", await thread.file("a.json", '[{"n": 1}, {"n": 3}]', "application/json"));
    expect(onlyDocument(state)).toMatchObject({ kind: "table", columns: [{ name: "n", numbers: { mean: 2 } }] });
  });
});

describe("a question about a text", () => {
  test("is answered with passages that stand in the document, where it says", async () => {
    const thread = new Thread();
    const text = await sample("guide-to-lighthouses.md");
    await thread.send("", await thread.file("guide.md", text, "text/markdown"));
    const { answer, calls, reasoning, steps } = await thread.send("How does a mercury bath work?");
    expect(steps).toEqual(["Reading", "Indexing", "Searching"]);
    expect(calls).toMatchObject([
      { name: "search_document", args: { document: "guide.md", query: "How does a mercury bath work?" } },
    ]);
    expect(reasoning).toContain("BM25");
    const quotes = quotesOf(answer);
    expect(quotes[0]?.text).toMatch(/mercury/i);
    expect(quotes[0]?.place).toContain("The mercury bath, line");
    const lines = text.split("\n");
    for (const { text: quote, place } of quotes) {
      const [, first, last = first] = /lines? (\d+)(?:–(\d+))?/.exec(place) ?? [];
      expect(spaced(lines.slice(Number(first) - 1, Number(last)).join(" "))).toContain(quote);
    }
    const passages = (calls[0]?.result as { passages: { score: number }[] } | undefined)?.passages.map(
      ({ score }) => score,
    );
    expect(passages).toEqual(passages?.toSorted((a, b) => b - a));
  });

  test("is indexed once", async () => {
    const thread = new Thread();
    await thread.send("", await thread.file("a.txt", "The lamp burns oil.\n\nThe bell rings in fog.\n", "text/plain"));
    expect((await thread.send("fog?")).steps).toContain("Indexing");
    expect((await thread.send("oil?")).steps).not.toContain("Indexing");
  });

  test("says plainly when there is nothing", async () => {
    const thread = new Thread();
    await thread.send("", await thread.file("a.txt", "The lamp burns oil.\n", "text/plain"));
    const { answer } = await thread.send("Where are the zebras?");
    expect(answer).toBe(
      "I found nothing about “zebra” in “a.txt”. Try another word for it, or one that stands in the document.\n",
    );
  });

  test("takes a near spelling, and says so", async () => {
    const thread = new Thread();
    await thread.send("", await thread.file("a.txt", "The lighthouse burns oil.\n", "text/plain"));
    const { answer, reasoning } = await thread.send("lihgthouse?");
    expect(quotesOf(answer)[0]?.text).toBe("The lighthouse burns oil.");
    expect(reasoning).toContain("“lihgthouse” is not in it; I took “lighthouse”");
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
    expect(steps).toEqual(["Reading", "Indexing", "Searching", "Reading", "Outline", "Key terms", "Key sentences"]);
    expect(quotesOf(answer)[0]?.text).toBe("The bell rings in fog.");
    expect(answer.indexOf("The bell rings in fog.")).toBeLessThan(answer.indexOf("## a.txt"));
  });

  test("that asks for the report gets the report again", async () => {
    const thread = new Thread();
    await thread.send("", await thread.file("a.txt", "The lamp burns oil.\n", "text/plain"));
    expect((await thread.send("Please summarise the document")).steps).toContain("Key sentences");
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
    expect(steps).toContain("Key sentences");
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
    expect(isReaderState(after)).toBe(true);
    expect(onlyDocument(after).name).toBe("a.txt");
  });

  test("keeps members of its state that are not Reader's, and sends no snapshot for them", async () => {
    const thread = new Thread();
    thread.state = { documents: {}, progress: null, other: 1 };
    const { events, state } = await thread.send("", await thread.file("a.txt", "Some text is here.\n", "text/plain"));
    expect(events.some(({ type }) => type === EventType.STATE_SNAPSHOT)).toBe(false);
    expect(state).toMatchObject({ other: 1 });
  });

  test("has progress that never goes back within a document", async () => {
    const thread = new Thread();
    const part = await thread.file("guide.md", await sample("guide-to-lighthouses.md"), "text/markdown");
    const { events } = await thread.send("", part);
    let state: unknown = undefined;
    let before = 0;
    for (const event of events) {
      state = stateAfter(state, [event]);
      const done = Object.values(readerStateOf(state).documents)[0]?.done ?? before;
      expect(done).toBeGreaterThanOrEqual(before);
      before = done;
    }
    expect(before).toBe(1);
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

describe("20 MB", () => {
  const MB20 = 20 * 1024 * 1024;

  test("of text are read, searched and kept small in the log", async () => {
    const thread = new Thread();
    const parts: string[] = [];
    let size = 0;
    for (let i = 0; size < MB20 - 200; i++) size += parts[parts.push(paragraph(i)) - 1]?.length ?? 0;
    const { state, events } = await thread.send("", await thread.file("big.txt", parts.join(""), "text/plain"));
    expect(onlyDocument(state)).toMatchObject({ phase: "Done" });
    expect(onlyDocument(state).counts).toContainEqual({ name: "words", value: parts.length * 12 });
    expect(JSON.stringify(events).length).toBeLessThan(500_000);
    const { calls, answer } = await thread.send("lamp500 harbour7");
    expect(calls).toMatchObject([{ result: { passages: expect.any(Array) as unknown } }]);
    expect(quotesOf(answer)[0]?.text).toMatch(/lamp500\b/);
  });

  test("of one line without a space are read", async () => {
    const thread = new Thread();
    const { state } = await thread.send("", await thread.file("big.txt", "äbc".repeat(MB20 / 4), "text/plain"));
    expect(onlyDocument(state)).toMatchObject({ phase: "Done" });
  });

  test("of a table are summed to the cent", async () => {
    const thread = new Thread();
    const rows = 700_000;
    const text = `city,cents,note\n${Array.from({ length: rows }, (_, i) => `c${i % 7},${i},"some, note"`).join("\n")}\n`;
    const { state } = await thread.send("", await thread.file("big.csv", text, "text/csv"));
    const [, cents] = (onlyDocument(state) as TableDocumentState).columns;
    expect(cents?.numbers).toMatchObject({ sum: (rows * (rows - 1)) / 2, median: (rows - 1) / 2, max: rows - 1 });
    const { calls } = await thread.send("how many rows where city is c3");
    expect(calls).toMatchObject([{ result: { matched: rows / 7 } }]);
  });
});
