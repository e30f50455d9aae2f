import { fileURLToPath } from "node:url";
import { installPackages } from "../setup/install.mjs";
import { modelServer, piecesOf } from "../openai/server.js";
import { launch } from "../tabs/driver/launch.js";
import { startBuilt } from "../tabs/driver/server.js";
import { median, ratio } from "./beside.js";
import type { Context } from "./context.js";
import { figure, inTurn, perSecond } from "./figures.js";
import { clockOffsetBy, stamp, WORD } from "./pages/stamps.js";
import type { Answered, ModelStage } from "./renders/model-stage.js";

const FOLDER = fileURLToPath(new URL("renders/", import.meta.url));

/** The pages, and what they stand for in the table. */
const CONTESTANTS = {
  "model-use-thread": "aiAgent in the worker, useThread",
  "model-use-chat": "useChat of the AI SDK, the provider in the page",
} as const;
type Page = keyof typeof CONTESTANTS;
const PAGES = Object.keys(CONTESTANTS) as Page[];

const call = <K extends keyof ModelStage["models"]>(name: K, ...args: Parameters<ModelStage["models"][K]>) =>
  [
    (method: string, given: unknown[]) =>
      (globalThis as unknown as { models: Record<string, (...all: unknown[]) => unknown> }).models[method]!(...given),
    name as string,
    args as unknown[],
  ] as const;

/** A model's answer from its server to the page: our agent in the worker beside the SDK in the page. */
export async function models({ quick, samples, figures, note }: Context): Promise<void> {
  if (!installPackages(FOLDER)) throw new Error("the packages of test/bench/renders could not be installed");
  const [model, server] = await Promise.all([
    modelServer(),
    startBuilt(
      {
        configFile: false,
        root: FOLDER,
        resolve: { tsconfigPaths: true, dedupe: ["react", "react-dom", "@ai-sdk/react", "ai"] },
        worker: { format: "es" },
      },
      [{ minify: false, rolldownOptions: { input: PAGES.map((page) => `${FOLDER}${page}.html`) } }],
    ),
  ]);
  const browser = await launch("chromium");
  // The worker lives in the process of the tab that was there first, and that is not the one that is measured.
  await browser.newTab(`${server.origin}${PAGES[0]}.html`);
  const tabs = await Promise.all(
    PAGES.map(async (page) => {
      const tab = await browser.newTab(`${server.origin}${page}.html`);
      await tab.waitFor(() => "models" in globalThis);
      await tab.evaluate(...call("open", model.url));
      const offset = await clockOffsetBy(async () => Number(await tab.evaluate(...call("now"))));
      return { page, tab, offset };
    }),
  );
  const asked = async (page: Page, during: () => Promise<void>): Promise<Answered & { readonly offset: number }> => {
    const { tab, offset } = tabs.find((it) => it.page === page)!;
    await tab.bringToFront();
    await tab.evaluate(...call("ask"));
    await during();
    return { ...((await tab.evaluate(...call("answered"))) as Answered), offset };
  };

  /** From the first byte of the answer's text to the page. */
  const firstText = (page: Page) => async (): Promise<number> => {
    model.reset();
    // A server that has taken the question and begun its answer, and says nothing for a while.
    model.script({ holds: true, raw: piecesOf({ text: [WORD], finish: null })[1]! });
    let sent = 0;
    const { first, offset } = await asked(page, async () => {
      await model.when(() => model.requests.length === 1);
      await new Promise((resolve) => setTimeout(resolve, 200));
      sent = stamp();
      model.release();
    });
    return first - offset - sent;
  };
  const n = quick ? 500 : 5_000;
  /** Deltas a second from the question to the whole answer in the page. */
  const throughput = (page: Page) => async (): Promise<number> => {
    model.reset();
    model.script({ text: Array.from({ length: n }, () => WORD) });
    const { asked: begun, last, length } = await asked(page, () => Promise.resolve());
    if (length !== n * WORD.length) throw new Error(`${page} shows ${length} characters`);
    return perSecond(n, last - begun);
  };

  try {
    for (const [group, unit, measure] of [
      ["models: the first text of an answer, React", "ms", firstText],
      [`models: an answer of ${n.toLocaleString("en-US")} deltas, as fast as it comes, React`, "events/s", throughput],
    ] as const) {
      const values: Readonly<Record<string, readonly number[]>> = await inTurn(
        samples,
        Object.fromEntries(PAGES.map((page) => [page, measure(page)])),
      );
      const chat = median(values["model-use-chat"]!);
      for (const page of PAGES) {
        const beside = page === "model-use-chat" ? undefined : ratio(median(values[page]!), chat, "useChat").join();
        figures.push(figure(group, CONTESTANTS[page], unit, values[page]!, beside));
      }
    }
  } finally {
    await browser.close();
    await Promise.all([server.close(), model.close()]);
  }
  note("models: both ask the same loopback server by @ai-sdk/openai-compatible; useThread draws with the next frame");
}
