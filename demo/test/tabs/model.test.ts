import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { violations } from "../../../test/tabs/driver/axe.js";
import type { Tab } from "../../../test/tabs/driver/browser.js";
import { respond } from "../../servers/model.mjs";
import { useDemo, waitForFocus } from "./demo-tabs.js";

/** The demo's agent on a language model: issue point "Demo". */
const demo = useDemo("model");
const engine = inject("engine");

async function openModel(): Promise<Tab> {
  const tab = await demo.open({ agent: "model" });
  await tab.waitForText("log", "Conversation", "Watch it use a tool");
  return tab;
}

const asked = async (tab: Tab, text: string): Promise<void> => {
  await tab.type("textbox", "Message", text);
  await tab.press("Enter");
};

const idle = (tab: Tab): Promise<unknown> =>
  tab.waitFor(() => document.querySelector("[role=log]")?.getAttribute("aria-busy") === "false");

/** A scripted model on a port of its own, which notes the headers of what it is asked. */
async function modelServer(): Promise<{ address: string; asked: IncomingHttpHeaders[] }> {
  const headers: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    if (request.method === "POST") headers.push(request.headers);
    void respond(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked: headers };
}

/** Opens the settings, and enters a server there. */
async function enter(tab: Tab, address: string, name = "scripted", key = ""): Promise<void> {
  await tab.click("button", /choose another model/);
  await tab.click("radio", /^Another server/);
  await tab.type("textbox", /^Address/, address);
  await tab.type("combobox", "Model", name);
  await tab.evaluate((text) => {
    const input = document.querySelector<HTMLInputElement>("#model-key")!;
    input.value = text;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }, key);
}

describe("the starting questions work at once", () => {
  test("a search: the model's tool loop is shown, and it quotes what it found", async () => {
    const tab = await openModel();
    await tab.click("button", "What did the keeper do with the lamp?");
    await tab.waitForText(
      "log",
      "Conversation",
      /searchDocuments[^]+searchDocuments[^]+guide-to-lighthouses\.md[^]+without a key\./,
    );
    await idle(tab);
    // Each call has its result.
    expect(await tab.evaluate(() => document.querySelectorAll(".tool-call .mark").length)).toBe(0);
    expect(await violations(tab)).toEqual([]);
    expect(tab.errors).toEqual([]);
  });

  test("a tool of the page runs in the tab that asked", async () => {
    const tab = await openModel();
    const other = await demo.open();
    await tab.bringToFront();
    await tab.click("button", "Make this page dark");
    await tab.waitForText("log", "Conversation", /This page is dark now\.[^]+change it back/);
    expect(await tab.attr("data-theme")).toBe("dark");
    await other.waitForText("log", "Conversation", "This page is dark now");
    expect(await other.attr("data-theme")).toBeNull();
  });

  test("a tool that asks first: any tab answers, also after the worker's end, and it is done once", async () => {
    const tab = await openModel();
    const other = await demo.open();
    await tab.bringToFront();
    await tab.click("button", "Give this thread a better name");
    for (const it of [tab, other])
      await it.waitForText("log", "Conversation", /Model asks for permission to call renameThread/);
    expect(await violations(tab)).toEqual([]);
    // Nothing else is sent meanwhile.
    await asked(tab, "And now?");
    expect(await tab.isDisabled("button", "Send")).toBe(true);
    await tab.click("button", "Kill the worker");
    await other.bringToFront();
    await other.click("button", "Allow");
    for (const it of [tab, other]) {
      await it.bringToFront();
      await it.waitForText("log", "Conversation", /The thread is called “A thread that was named by its model” now\./);
      await it.waitForText("navigation", "Threads", "A thread that was named by its model");
      expect(await it.count("button", "Allow")).toBe(0);
    }
  });

  test("what is not allowed is not done, and the model is told", async () => {
    const tab = await openModel();
    await tab.click("button", "Give this thread a better name");
    await tab.click("button", "Don’t allow");
    await tab.waitForText("log", "Conversation", /Then the thread keeps its name/);
    expect(await tab.text("navigation", "Threads")).not.toContain("named by its model");
  });
});

describe("another model", () => {
  test("servers of this computer are looked for when they are asked for, and what is not there says what to do", async () => {
    const tab = await openModel();
    await tab.click("button", /choose another model/);
    await tab.waitForText("dialog", "Choose a model", /Scripted model\s+Runs: 1 model/);
    await tab.waitForText("dialog", "Choose a model", /Ollama\s+Not found\. Start it with “ollama serve”/);
    expect(await violations(tab)).toEqual([]);
    await tab.press("Escape");
    await tab.waitFor(() => document.querySelector("dialog") === null);
  });

  test("one that cannot be reached: the run says why and what to do, and another one is chosen there", async () => {
    const tab = await openModel();
    await enter(tab, "http://127.0.0.1:1/v1");
    await tab.waitForText("dialog", "Choose a model", /Another server\s+Not found/);
    await tab.click("button", "Use it");
    await asked(tab, "Hello");
    await tab.waitForText("log", "Conversation", /could not be reached[^]+Is it running, and does it allow this page/);
    await tab.click("button", "Choose another model");
    await tab.click("radio", /^Scripted model/);
    await tab.click("button", "Use it");
    await tab.click("button", "Run again");
    await tab.waitForText("log", "Conversation", /You said: “Hello”/);
  });

  test("its key goes to its server with each call, and is stored nowhere", async () => {
    const server = await modelServer();
    const tab = await openModel();
    const key = `planted-${crypto.randomUUID()}`;
    await enter(tab, server.address, "scripted", key);
    await tab.click("button", "Use it");
    await asked(tab, "Hello");
    await tab.waitForText("log", "Conversation", /You said: “Hello”[^]+protocol\./);
    await idle(tab);
    expect(server.asked.map(({ authorization }) => authorization)).toEqual([`Bearer ${key}`]);
    const kept = await tab.evaluate(async () => {
      const all: unknown[] = [{ ...localStorage }, { ...sessionStorage }];
      for (const { name } of await indexedDB.databases()) {
        const db = await new Promise<IDBDatabase>((resolve, reject) => {
          const opening = indexedDB.open(name!);
          opening.onsuccess = () => resolve(opening.result);
          opening.onerror = () => reject(opening.error);
        });
        for (const store of db.objectStoreNames) {
          const rows = db.transaction(store).objectStore(store).getAll();
          all.push(await new Promise((resolve) => (rows.onsuccess = () => resolve(rows.result))));
        }
        db.close();
      }
      return JSON.stringify(all, (_, value: unknown) =>
        ArrayBuffer.isView(value) ? new TextDecoder().decode(value) : value,
      );
    });
    expect(kept).toContain("You said");
    expect(kept).not.toContain(key);
    // Gone with a reload, and never for another server.
    await tab.reload();
    await tab.click("button", /choose another model/);
    expect(await tab.evaluate(() => document.querySelector<HTMLInputElement>("#model-key")?.value)).toBe("");
  });

  test.runIf(engine === "chromium")("is chosen by keyboard", async () => {
    const tab = await openModel();
    await tab.evaluate(() => document.querySelector<HTMLElement>(".model-chip")?.focus());
    await tab.press("Enter");
    await tab.waitForText("dialog", "Choose a model", "Where it runs");
    await tab.press("Escape");
    await tab.waitFor(() => document.querySelector("dialog") === null);
    expect(await tab.evaluate(() => document.activeElement?.className)).toContain("model-chip");
    await tab.press("/");
    await waitForFocus(tab, "Message");
  });
});
