import { connectRuntime, FrontendTools, type RuntimeConnection, type ThreadSummary } from "ag-ui-local-runtime/client";
import { defineAgent, serveRuntime } from "ag-ui-local-runtime/worker";
import { NEVER } from "rxjs";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import type { App } from "../../../ui/app.js";
import { BrowserModel } from "../../../ui/browser-model.js";
import { Chat, type Page } from "../../../ui/chat.js";
import { Feedback } from "../../../ui/feedback.js";
import { Threads } from "../../../ui/threads.js";
import { conversation } from "../../../ui/view/conversation.js";
import { hostPopover } from "../../../ui/view/host.js";
import { modelDialog } from "../../../ui/view/model.js";
import { threads as threadsView } from "../../../ui/view/threads.js";
import { markupOf } from "./markup.js";

afterEach(() => {
  vi.unstubAllGlobals();
});

/** A view looks at a part of the page only. */
const pageWith = (parts: object): App => parts as unknown as App;

const SCROLLING = { atEnd: true, toEnd: () => undefined };

/** A tab of a host that lets nothing be read. */
function refused(): RuntimeConnection {
  const host = serveRuntime({
    agents: { reader: defineAgent(async function* (_input) {}) },
    dbName: `refused-${crypto.randomUUID()}`,
    memoryFallback: true,
    beforeRequestMiddleware: () => new Response("Sign in", { status: 401 }),
  });
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  return runtime;
}

const shownBeside = { isFailed: false, thread: {}, chat: { now: { threadId: "t", messages: [] } } };

test("a list of threads that cannot be read says so, and why; until then it is being loaded", async () => {
  const threads = new Threads(refused(), () => undefined);
  onTestFinished(() => threads.close());
  const view = (): string => markupOf(threadsView(pageWith({ ...shownBeside, threads })));
  expect(view()).toContain("Loading…");
  await vi.waitFor(() => expect(threads.failure).toContain("Sign in"));
  expect(view()).toMatch(/role="alert">The threads cannot be read: .*Sign in/);
  expect(view()).not.toContain("Loading…");
});

test("older threads that cannot be read reject nothing: the list says so, and still has the others", async () => {
  const page = Array.from({ length: 200 }, (_, n) => ({
    threadId: `t${n}`,
    title: `${n}`,
    createdAt: 1,
    updatedAt: 1_000 - n,
  }));
  const list = vi.fn(async () => page.map((thread) => ({ ...thread, archived: false }) as ThreadSummary));
  const runtime = { threads: { list, watch: () => NEVER } } as unknown as RuntimeConnection;
  const threads = new Threads(runtime, () => undefined);
  onTestFinished(() => threads.close());
  await vi.waitFor(() => expect(threads.hasMore).toBe(true));
  list.mockRejectedValue(new Error("The host failed"));
  await threads.loadMore();
  expect(threads.failure).toBe("The list may lack threads: The host failed");
  expect(threads.shown).toHaveLength(200);
});

test("a thread that cannot be read says so, and why", async () => {
  const feedback = Object.assign(new Feedback(), {
    drafting: { clearSent: () => undefined, draft: { text: "", files: [] } },
    tools: new FrontendTools(),
    agent: { name: "Reader" },
    isFailed: false,
  });
  const chat = new Chat(feedback as unknown as Page, refused(), "t");
  chat.follow();
  onTestFinished(() => chat.leave());
  await vi.waitFor(() => expect(chat.failure).toContain("Sign in"));
  const app = pageWith({ chat, agent: { name: "Reader" }, status: { is: "connected" }, isFailed: false });
  expect(markupOf(conversation(app, SCROLLING))).toMatch(
    /role="alert">[^]*This thread cannot be read: [^]*Sign in[^]*It is tried again/,
  );
});

test("a download of the browser's own model that failed is told in the dialog, and may be tried again", async () => {
  vi.stubGlobal("location", new URL("http://localhost/"));
  vi.stubGlobal("LanguageModel", {
    availability: async () => "downloadable",
    create: async () => {
      throw new Error("Not enough space");
    },
  });
  const browserModel = new BrowserModel(new Feedback());
  await browserModel.offer({ offerModel: () => () => undefined } as unknown as RuntimeConnection);
  await vi.waitFor(() => expect(browserModel.status?.is).toBe("downloadable"));
  await browserModel.download();
  const model = { draft: { address: "browser:", name: "", key: "" }, found: new Map() };
  const dialog = (): string => markupOf(modelDialog(pageWith({ model, browserModel }), () => undefined));
  expect(dialog()).toMatch(/role="status">It could not be downloaded: Not enough space[^]*>Download</);
  browserModel.status = { is: "downloading", progress: 0.5 };
  expect(dialog()).toMatch(/role="status">Downloading…[^]*<progress\s+aria-label="[^"]+"\s+value=0.5/);
});

test.each([
  [undefined, "What you send to Model does not leave your computer."],
  ["api.example.com", "What you send to Model also goes to api.example.com."],
])("the page says where that goes which is sent: %s", (recipient, says) => {
  const status = { is: "connected", host: "worker", durability: "durable", survives: "nothing", bootId: "b", tabs: 1 };
  expect(markupOf(hostPopover(pageWith({ status, recipient, agent: { name: "Model" }, online: true })))).toContain(
    says,
  );
});
