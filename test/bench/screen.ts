import { tellThread } from "./attach.js";
import { median, ratio } from "./beside.js";
import type { Context } from "./context.js";
import { figure, inTurn } from "./figures.js";
import { freshHost, HOST } from "./lab.js";
import type { ScreenRun } from "./pages/tab-screen.js";

const MESSAGES = 200;
/** Main-thread time is given for so many deltas. */
const PER = 1_000;

const SPEEDS = [
  { agentId: "yielding", rate: 0, speed: "full speed" },
  { agentId: "steady", rate: 2_500, speed: "2,500 deltas a second" },
] as const;

/** What streaming costs the main thread of a tab with a long chat. */
export async function screen({ lab, quick, samples, figures, show, note }: Context): Promise<void> {
  const n = quick ? 2_000 : 10_000;
  const host = freshHost();
  // The worker lives in the process of the tab that was there first, and that is not the one that is measured.
  const other = await lab.tab(host);
  /** One run in a tab of its own. */
  const taskMs = async (run: Omit<ScreenRun, "key" | "threadId" | "messages" | "n">): Promise<number> => {
    const threadId = crypto.randomUUID();
    if (run.way === "local") await tellThread(other, threadId, MESSAGES);
    const { page, meter } = await lab.meteredTab(host);
    await page.prepareScreen({ ...run, key: HOST, threadId, messages: MESSAGES, n });
    const before = await meter.taskMs();
    await page.runScreen();
    const after = await meter.taskMs();
    await meter.close();
    await lab.closeTab(page);
    return ((after - before) / n) * PER;
  };
  for (const { speed, ...fast } of SPEEDS) {
    for (const drawn of [false, true]) {
      const { frames, local, byDefault } = await inTurn(samples, {
        frames: () => taskMs({ ...fast, drawn, way: "frames" }),
        local: () => taskMs({ ...fast, drawn, way: "local" }),
        byDefault: () => taskMs({ ...fast, drawn, way: "default" }),
      });
      const group = `screen: main-thread ms per ${PER.toLocaleString("en-US")} deltas after ${MESSAGES} messages, ${speed}, ${drawn ? "drawn" : "only looked at"}`;
      const row = (name: string, values: readonly number[], beside?: string): void =>
        void figures.push(figure(group, name, "ms", values, beside));
      row("frames, unpacked and no further", frames);
      row("LocalAgent", local, ratio(median(local), median(frames), "the frames").join());
      const beside = ratio(median(byDefault), median(local), "LocalAgent").join();
      row("the same events through the client's default apply", byDefault, beside);
    }
    show();
  }
  note("screen: TaskDuration of the page, which has everything that its main thread does");
  await lab.closeTabs();
}
