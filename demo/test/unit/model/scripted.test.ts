import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { choiceIn, headersOf, isLocal } from "../../../model/choice.js";
import { look } from "../../../model/servers.js";
import { listen, MODEL, nextTurn } from "../../../servers/model.mjs";

const tools = ["searchDocuments", "setTheme", "renameThread"].map((name) => ({ function: { name } }));
const user = (content: string) => ({ role: "user", content });
const called = (name: string) => ({ role: "assistant", tool_calls: [{ function: { name } }] });
const result = (content: string) => ({ role: "tool", content });

const found = (text: string): string =>
  JSON.stringify({ passages: [{ document: "a.md", section: "S", line: 3, text }] });

describe("the scripted model", () => {
  test.each([
    ["What did the keeper do with the lamp?", "searchDocuments", { query: "What did the keeper do with the lamp?" }],
    ["Make this page dark", "setTheme", { theme: "dark" }],
    ["Make it light again", "setTheme", { theme: "light" }],
    ["Give this thread a better name", "renameThread", { title: "A thread that was named by its model" }],
  ])("calls a tool for “%s”", (question, name, args) => {
    const turn = nextTurn({ messages: [user(question)], tools });
    expect(turn).toEqual({ calls: [{ name, arguments: JSON.stringify(args) }] });
  });

  test("searches twice, then quotes what it found, as text", () => {
    const messages = [user("The lamp?"), called("searchDocuments"), result(found("The *lamp* <b>"))];
    expect(nextTurn({ messages, tools })).toMatchObject({ calls: [{ name: "searchDocuments" }] });
    const second = [...messages, called("searchDocuments"), result(found("Fog."))];
    expect(nextTurn({ messages: second, tools })).toMatchObject({
      text: expect.stringMatching(/> The \\\*lamp\\\* \\<b\\>\n>\n> \*a\.md, S, line 3\*[^]+> Fog\./) as string,
    });
  });

  test("says so where nothing was found, and where a person did not allow it", () => {
    const search = [user("The lamp?"), called("searchDocuments"), result('{"passages":[]}')];
    expect(nextTurn({ messages: search, tools })).toMatchObject({ text: expect.stringContaining("nothing") as string });
    const rename = [user("A better name"), called("renameThread"), result("The user denied this call")];
    expect(nextTurn({ messages: rename, tools })).toMatchObject({
      text: expect.stringContaining("keeps its name") as string,
    });
  });

  test("answers all else without a tool, and calls none that it was not given", () => {
    expect(nextTurn({ messages: [user("Hello")], tools })).toMatchObject({
      text: expect.stringContaining("scripted") as string,
    });
    expect(nextTurn({ messages: [user("Make this page dark")] })).toHaveProperty("text");
  });

  test("goes on with an answer that was cut off, word for word", () => {
    const question = user("Hello");
    const whole = nextTurn({ messages: [question], tools });
    if (!("text" in whole)) throw new Error("No text");
    const said = whole.text.slice(0, 40);
    const messages = [question, { role: "assistant", content: said }, user("Your answer was cut off in the middle.")];
    expect(nextTurn({ messages, tools })).toEqual({ text: whole.text.slice(40) });
  });
});

describe("a server that is looked for", () => {
  let address: string;
  let end: () => void;

  beforeEach(async () => {
    const server = await listen(0);
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    end = () => server.close();
  });

  afterEach(() => {
    end();
    vi.unstubAllGlobals();
  });

  test("is found with its models", async () => {
    expect(await look(address)).toEqual({ is: "found", models: [MODEL] });
  });

  test("is absent where nobody listens, and where nobody knows of models", async () => {
    expect(await look(address.replace("/v1", "/other"))).toEqual({ is: "absent" });
    end();
    expect(await look("http://127.0.0.1:1/v1")).toEqual({ is: "absent" });
  });

  test("is blocked where it keeps its answers from the page", async () => {
    vi.stubGlobal("fetch", async (_url: string, { mode }: RequestInit) => {
      if (mode !== "no-cors") throw new TypeError("Failed to fetch");
      return Response.error();
    });
    expect(await look(address)).toEqual({ is: "blocked" });
  });

  test("keeps foreign pages out", async () => {
    const headers = { origin: "https://example.org" };
    expect((await fetch(`${address}/models`, { headers })).status).toBe(403);
  });
});

describe("the choice of a model", () => {
  beforeEach(() => vi.stubGlobal("location", new URL("http://127.0.0.1:5173/")));
  afterEach(() => vi.unstubAllGlobals());

  test("crosses as headers, whatever is in it", () => {
    const choice = { address: "https://example.org/v1", name: "größe/模型" };
    const headers = headersOf(choice, "schlüssel");
    expect(() => new Headers(headers)).not.toThrow();
    expect(choiceIn(headers)).toEqual({ choice, key: "schlüssel" });
  });

  test.each([{}, { "x-model": "%" }, { "x-model": encodeURIComponent('{"address":"file:///etc","name":"x"}') }])(
    "is the scripted one for %j",
    (headers) => {
      expect(choiceIn(headers).choice).toEqual({ address: "http://127.0.0.1:5173/model/v1", name: "scripted" });
    },
  );

  test("knows what needs no network", () => {
    expect(["http://localhost:11434/v1", "http://127.0.0.1/v1", "browser:"].every(isLocal)).toBe(true);
    expect(isLocal("https://example.org/v1")).toBe(false);
  });

  test("the server of a page that is on another computer needs the network", () => {
    vi.stubGlobal("location", new URL("https://example.org/"));
    expect(isLocal(choiceIn({}).choice.address)).toBe(false);
  });
});
