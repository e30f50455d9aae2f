import { fileURLToPath } from "node:url";
import { hasPackages, installPackages } from "../setup/install.mjs";
import { launch } from "../tabs/driver/launch.js";
import { startBuilt } from "../tabs/driver/server.js";
import { median, ratio } from "./beside.js";
import type { Context } from "./context.js";
import { figure, inTurn } from "./figures.js";
import { meterOf } from "./meter.js";
import { MESSAGES, type Order, type Renders } from "./renders/order.js";

const FOLDER = fileURLToPath(new URL("renders/", import.meta.url));
/** CopilotKit is large, and a package of the example alone: it is measured where that is installed. */
const COPILOTKIT = fileURLToPath(new URL("../../demo/copilotkit/", import.meta.url));
const COPILOTKIT_V2 = `${COPILOTKIT}node_modules/@copilotkit/react-core/dist/v2/`;
const N = 1_000;
const RATES = [250, 2_500] as const;

/** The pages, and what they stand for in the table. */
const CONTESTANTS = {
  "use-thread": "useThread",
  "use-chat": "useChat of the AI SDK",
  "use-agent": "useAgent of CopilotKit",
} as const;
type Page = keyof typeof CONTESTANTS;

/** What a page of renders/stage.tsx has put into its global scope. */
interface Stage {
  readonly renders: { prepare(): Promise<void>; run(order: Order): Promise<Renders> };
}

/** What a stream costs a React page: our hook beside others on the same host. */
export async function renders({ quick, samples, figures, show, note }: Context): Promise<void> {
  if (!installPackages(FOLDER)) throw new Error("the packages of test/bench/renders could not be installed");
  const hasCopilotKit = hasPackages(COPILOTKIT);
  const pages: readonly Page[] = ["use-thread", "use-chat", ...(hasCopilotKit ? (["use-agent"] as const) : [])];
  const server = await startBuilt(
    {
      configFile: false,
      root: FOLDER,
      resolve: {
        tsconfigPaths: true,
        alias: [{ find: /^@copilotkit\/react-core\/v2$/, replacement: `${COPILOTKIT_V2}index.mjs` }],
        // CopilotKit's copy of `@ag-ui/client` stays its own, as in an app.
        dedupe: ["react", "react-dom", "@ai-sdk/react"],
      },
      worker: { format: "es" },
    },
    [{ minify: false, rolldownOptions: { input: pages.map((page) => `${FOLDER}${page}.html`) } }],
  );
  const browser = await launch("chromium");
  // The worker lives in the process of the tab that was there first, and that is not the one that is measured.
  await browser.newTab(`${server.origin}use-thread.html`);
  let tabs = 0;
  /** One run in a tab of its own. */
  const measured = async (page: Page, order: Order) => {
    const url = `${server.origin}${page}.html#${++tabs}`;
    const tab = await browser.newTab(url);
    await tab.bringToFront();
    try {
      await tab.waitFor(() => "renders" in globalThis);
      await tab.evaluate(() => (globalThis as unknown as Stage).renders.prepare());
      const meter = await meterOf(browser.profile, url);
      const before = await meter.taskMs();
      const counted = await tab.evaluate((given) => (globalThis as unknown as Stage).renders.run(given), order);
      const ms = (await meter.taskMs()) - before;
      await meter.close();
      return { ...counted, ms };
    } finally {
      await tab.close();
    }
  };
  try {
    for (const rate of quick ? [2_500] : RATES) {
      const order = { n: N, rate };
      const counts: Record<Page, Renders[]> = { "use-thread": [], "use-chat": [], "use-agent": [] };
      const once = (page: Page) => async (): Promise<number> => {
        const { ms, ...counted } = await measured(page, order);
        counts[page].push(counted);
        return ms;
      };
      const times: Readonly<Record<string, readonly number[]>> = await inTurn(
        samples,
        Object.fromEntries(pages.map((page) => [page, once(page)])),
      );
      const group = `renders: ${N.toLocaleString("en-US")} deltas into the last of ${MESSAGES} messages, React, ${rate.toLocaleString("en-US")} deltas a second`;
      const row = (what: string, unit: "ms" | "count", of: (page: Page) => readonly number[]): void => {
        const ours = median(of("use-thread"));
        for (const page of pages) {
          const values = of(page);
          const beside = page === "use-thread" ? undefined : ratio(median(values), ours, "useThread").join();
          figures.push(figure(group, `${CONTESTANTS[page]}: ${what}`, unit, values, beside));
        }
      };
      // The first of each is the warm-up.
      row("commits", "count", (page) => counts[page].slice(1).map(({ list }) => list));
      row("renders of messages", "count", (page) => counts[page].slice(1).map(({ messages }) => messages));
      row("main thread", "ms", (page) => times[page]!);
      show();
    }
  } finally {
    await browser.close();
    await server.close();
  }
  note(
    hasCopilotKit
      ? "renders: useAgent without a throttle, as CopilotKit has it by default"
      : "renders: useAgent of CopilotKit is left out; `npm ci --prefix demo/copilotkit` (525 MB) brings it",
  );
  note("renders: main thread is TaskDuration of the page, which has everything that it does; production builds");
}
