import { describe, expect, test } from "vitest";
import type { Tab } from "../../../test/tabs/driver/browser.js";
import { answered, ask, connected, newThread, useDemo, waitForFocus } from "./demo-tabs.js";

/** What a stranger finds on the demo's page besides the chat itself. */
const demo = useDemo("front-end");

describe("the first screen", () => {
  test("says what this is, with the line that starts it and the way to the README", async () => {
    const tab = await demo.open();
    const said = await tab.text("log", "Conversation");
    expect(said).toMatch(/ag-ui-local-runtime runs AG-UI agents in a worker that all your tabs share/);
    expect(said).toContain("serveRuntime({ agents: { reader, research, model }");
    await tab.click("link", "README");
    await tab.waitFor(() => document.querySelector("main.guide h1")?.textContent === "ag-ui-local-runtime");
    await tab.click("link", "guarantees");
    await tab.waitFor(() => document.title.startsWith("Guarantees"));
    expect(tab.errors).toEqual([]);
  });

  test("a sample starts at once, and the answer to its question comes before the report", async () => {
    const tab = await demo.open();
    await tab.type("textbox", "Message", "not sent yet");
    await tab.click("button", "Ask a short story about its notebooks");
    await tab.waitForText("log", "Conversation", /Ask me about it, for example/);
    const said = await tab.text("log", "Conversation");
    expect(said).toContain("the-last-relief.txt");
    expect(said.indexOf("The notebooks were lists of birds")).toBeGreaterThan(0);
    expect(said.indexOf("The notebooks were lists of birds")).toBeLessThan(said.indexOf("Outline"));
    expect(await tab.text("textbox", "Message")).toBe("not sent yet");
  });

  test("is shown from its beginning, wherever the thread before it was read", async () => {
    const tab = await demo.open();
    await tab.resize(1280, 500);
    await ask(tab, "help");
    await tab.waitFor(() => document.querySelector("#conversation")?.scrollTop);
    await newThread(tab);
    expect(await tab.evaluate(() => document.querySelector("#conversation")?.scrollTop)).toBe(0);
  });

  test("a greeting is answered with what the agent can do", async () => {
    const tab = await demo.open();
    await ask(tab, "Hello there!");
    expect(await tab.text("log", "Conversation")).toMatch(/Hello, I am Reader[^]+Drop a file or paste a text/);
  });
});

describe("messages", () => {
  test("an answer is copied and given again; a question is changed, with what follows it", async () => {
    const tab = await demo.open({
      beforeLoad: () => {
        Object.defineProperty(navigator, "clipboard", {
          value: { writeText: async (text: string) => void (document.documentElement.dataset["copied"] = text) },
        });
      },
    });
    await ask(tab, "help");
    await ask(tab, "hello");
    await tab.click("button", "Copy answer");
    await tab.waitFor(() => document.documentElement.dataset["copied"]?.startsWith("## Hello, I am Reader"));
    const idOf = (): Promise<string | undefined> =>
      tab.evaluate(() => document.querySelector<HTMLElement>("article[aria-label=Reader]")?.innerText);
    const answer = await idOf();
    // The first one: what follows it leaves the thread.
    await tab.click("button", "Regenerate answer");
    await tab.waitFor(() => document.querySelectorAll("article[aria-label=You]").length === 1);
    await answered(tab);
    expect(await idOf()).toBe(answer);
    await tab.click("button", "Edit question");
    await waitForFocus(tab, "Question");
    await tab.press("Escape");
    await waitForFocus(tab, "Message");
    expect(await tab.count("textbox", "Question")).toBe(0);
    // By keyboard, the last one.
    await tab.press("ArrowUp");
    await waitForFocus(tab, "Question");
    await tab.type("textbox", "Question", "good morning");
    await tab.press("Enter");
    await tab.waitForText("log", "Conversation", /good morning[^]+I am Reader/);
    await answered(tab);
    expect(await tab.count("article", "You")).toBe(1);
    expect(tab.errors).toEqual([]);
  });

  test("after a stop the question is run again in its place", async () => {
    const held = await demo.hold();
    const tab = await demo.open();
    await tab.type("textbox", "Message", "help");
    await tab.press("Enter");
    await tab.waitForText("log", "Conversation", /I read documents/);
    await tab.click("button", "Stop");
    await tab.waitForText("log", "Conversation", "Stopped");
    await held.close();
    await tab.click("button", "Run again");
    await tab.waitForText("log", "Conversation", /and I will start reading/);
    await answered(tab);
    expect(await tab.count("article", "You")).toBe(1);
    expect(await tab.text("log", "Conversation")).not.toContain("Stopped");
  });
});

describe("tabs and workers", () => {
  test("a second tab opens beside this one, shows the run, and closes", async () => {
    const held = await demo.hold();
    const tab = await demo.open();
    await tab.click("button", "Open a second tab here");
    const inSecond = (words: string): Promise<unknown> =>
      tab.waitFor(
        (text) =>
          document.querySelector("iframe")?.contentDocument?.querySelector("[role=log]")?.textContent?.includes(text),
        words,
      );
    await inSecond("Agents that live");
    await tab.waitForText("button", /Shared worker/, "2 tabs");
    await tab.type("textbox", "Message", "help");
    await tab.press("Enter");
    await inSecond("I read documents");
    await held.close();
    await tab.bringToFront();
    await inSecond("and I will start reading");
    await answered(tab);
    await tab.click("button", "Close second tab here");
    await tab.waitFor(() => document.querySelector("iframe") === null);
    await tab.waitForText("button", /Shared worker/, "1 tab");
    expect(tab.errors).toEqual([]);
  });

  test("a killed worker breaks its run, the next one takes over, the question is run again (L8, L9)", async () => {
    const held = await demo.hold();
    const a = await demo.open();
    await a.type("textbox", "Message", "help");
    await a.press("Enter");
    const b = await demo.open();
    for (const tab of [a, b]) await tab.waitForText("log", "Conversation", /I read documents/);
    const boot = (tab: Tab): Promise<string | undefined> =>
      tab.evaluate(() => document.querySelector(".host code + code")?.textContent ?? undefined);
    const before = await boot(a);
    await a.click("button", "Kill the worker");
    for (const tab of [a, b]) {
      await tab.waitForText("log", "Conversation", /I read documents[^]+This run was interrupted: its worker ended/);
      await connected(tab);
    }
    expect(await boot(a)).not.toBe(before);
    await held.close();
    await b.click("button", "Run again");
    for (const tab of [a, b]) {
      await tab.bringToFront();
      await tab.waitForText("log", "Conversation", /and I will start reading/);
      await answered(tab);
      expect(await tab.text("log", "Conversation")).not.toContain("interrupted");
    }
    expect([...a.errors, ...b.errors]).toEqual([]);
  });

  test("a run is “started in another tab” there, and nowhere after a reload", async () => {
    const held = await demo.hold();
    const a = await demo.open();
    const b = await demo.open();
    await b.waitForAttr("data-thread", "ready"); // from here on it looks on
    await a.type("textbox", "Message", "help");
    await a.press("Enter");
    const chip = (tab: Tab): Promise<string> =>
      tab.evaluate(() => document.querySelector<HTMLElement>(".run-chip")?.innerText ?? "");
    await b.waitFor(() => document.querySelector(".run-chip")?.textContent?.includes("started in another tab"));
    await a.waitFor(() => document.querySelector(".run-chip") !== null);
    expect(await chip(a)).toBe("Running");
    await a.reload();
    await a.waitFor(() => document.querySelector(".run-chip") !== null);
    expect(await chip(a)).toBe("Running");
    await held.close();
    await answered(b);
  });

  test("the page says when the network is gone, how much is stored, and that it works", async () => {
    const tab = await demo.open();
    await tab.evaluate(() => {
      Object.defineProperty(navigator, "onLine", { configurable: true, get: () => false });
      dispatchEvent(new Event("offline"));
    });
    await tab.waitFor(() => document.querySelector(".chip.is-offline") !== null);
    await tab.click("button", /Shared worker/);
    await tab.waitFor(() => /used\./.test(document.querySelector(".storage")?.textContent ?? ""));
    expect(await tab.evaluate(() => document.querySelector<HTMLElement>(".popover-body")?.innerText)).toMatch(
      /Saved on this device[^]+Offline/,
    );
    await tab.press("Escape");
    await ask(tab, "help");
    expect(tab.errors).toEqual([]);
  });
});
