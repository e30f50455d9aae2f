import { tellThread } from "./attach.js";
import { median, ratio } from "./beside.js";
import type { Context } from "./context.js";
import { figure, inTurn } from "./figures.js";
import { freshHost } from "./lab.js";
import type { HostConfig } from "./pages/stamps.js";

const MESSAGES = 100;

/** From no worker at all to what a tab shows. */
export async function firstAttach({ lab, quick, samples, figures }: Context): Promise<void> {
  const { dbName, ...host } = freshHost();
  const threadId = "told";
  const tab = await lab.tab({ dbName, ...host });
  await tellThread(tab, threadId, MESSAGES);

  const bare = async (what: "idle" | "loaded"): Promise<number> => {
    const name = `bare ${crypto.randomUUID()}`;
    const ms = await tab.bareStart(name, what);
    await lab.endBare(name);
    return ms;
  };
  /** A host of which there is no worker. */
  const withNew = async <T>(own: Partial<HostConfig>, work: (config: HostConfig) => Promise<T>): Promise<T> => {
    const config = { ...host, dbName, ...own, host: `first ${crypto.randomUUID()}` };
    const result = await work(config);
    await lab.endHost(config);
    return result;
  };
  const connected = { thread: [] as number[], lazy: [] as number[], nothing: [] as number[] };
  const byAgent = async (own: Partial<HostConfig>, count: number, of: keyof typeof connected): Promise<number> => {
    const times = await withNew(own, (config) => tab.firstByAgent(config, threadId, count));
    connected[of].push(times.connected);
    return times.there;
  };
  const values = await inTurn(quick ? samples : Math.max(30, samples), {
    idle: () => bare("idle"),
    loaded: () => bare("loaded"),
    frame: () => withNew({}, (config) => tab.firstByFrame(config, threadId, MESSAGES)),
    agent: () => byAgent({}, MESSAGES, "thread"),
    lazy: () => byAgent({ lazy: true }, MESSAGES, "lazy"),
    nothing: () => byAgent({ dbName: `${dbName}-${crypto.randomUUID()}` }, 0, "nothing"),
  });
  await lab.closeTabs();

  const base = median(values.idle);
  const row = (name: string, times: readonly number[], ...beside: string[]): void => {
    const besides = [...(times === values.idle ? [] : ratio(median(times), base, "that")), ...beside].join(", ");
    figures.push(figure(`first-attach: no worker yet; ${MESSAGES} messages`, name, "ms", times, besides));
  };
  row("a worker that does nothing → its first message", values.idle, "measured earlier: 16 to 36");
  row("a worker that loads the runtime's code and no more → its first message", values.loaded);
  row("a link is opened → the frame with the snapshot", values.frame);
  row("connectRuntime() → a LocalAgent's messages", values.agent);
  row("of it: → connected", connected.thread.slice(1));
  const besideStatic = ratio(median(values.lazy), median(values.agent), "agents that are there at once");
  row("agents loaded at their first run: connectRuntime() → a LocalAgent's messages", values.lazy, ...besideStatic);
  row("agents loaded at their first run: connectRuntime() → connected", connected.lazy.slice(1));
  row("no database yet: connectRuntime() → a LocalAgent knows that there is nothing", values.nothing);
  row("no database yet: connectRuntime() → connected", connected.nothing.slice(1));
}
