import type { Context } from "./context.js";
import { figure, shown, type Figure } from "./figures.js";
import { freshHost, HOST, type Lab, type Remote } from "./lab.js";
import { clockOffsetBy, stamp } from "./pages/stamps.js";
import type { TabBench } from "./pages/tab.js";
import type { Doomed, Next, Witness } from "./pages/tab-faults.js";

/** What the first prototype of the design reached, on such a machine. */
const PROTOTYPE_DEATH = "the prototype: 108, 83 of it the new worker's start";

/** Deaths before those that count. */
const WARM_UP = 2;

/** A host that dies sooner, again and again, is started with a pause. In ms. */
const HOST_LIVES_MS = 1_100;

/** Words of a run that has hardly begun, and of one that has said much. */
const FEW = 10;
const MANY = 50_000;

// ---- refusing, stopping

async function refuseAndStop({ lab, quick, figures }: Context): Promise<void> {
  const OTHER = "other";
  const host = freshHost();
  const tab = await lab.tab(host);
  await tab.connect(OTHER, { ...host, host: "b" });
  for (const [asker, name, beside] of [
    [HOST, "same host", "the prototype: p50 0.2, p99 2"],
    [OTHER, "other host", "the prototype: p50 0.9, p99 6"],
  ] as const) {
    await tab.refusals(HOST, asker, `warm-up ${name}`, 20);
    const refused = await tab.refusals(HOST, asker, `busy ${name}`, quick ? 50 : 500);
    figures.push(figure("faults: refusals", `a busy thread is refused, ${name}`, "ms", refused, beside));
  }
  for (const [asker, name, beside] of [
    [HOST, "same host", "the prototype: 4"],
    [OTHER, "other host", "the prototype: 7"],
  ] as const) {
    await tab.stops(HOST, asker, 10);
    const stopped = await tab.stops(HOST, asker, quick ? 10 : 200);
    const row = (what: string, values: readonly number[], against?: string): void =>
      void figures.push(figure("faults: stops", `stop → ${what}, ${name}`, "ms", values, against));
    row("the agent's signal aborts", stopped.aborted);
    row("terminal event in the tab that runs", stopped.owner, beside);
    if (asker !== HOST) row("terminal event in the tab that asked", stopped.asker, beside);
  }
  await lab.closeTabs();
}

// ---- the death of a host

/** A page that notices a death. */
interface Mourner<W> {
  /** Of its clock from this process's, in ms. */
  readonly offset: number;
  readonly witnessed: () => Promise<W>;
}

/** Ends a worker; times of what was noticed, in ms, from the command on: its way to the browser is in each of them. */
async function kill<W extends object>(end: () => Promise<void>, mourners: readonly Mourner<W>[]): Promise<W[]> {
  const killed = stamp();
  await end();
  return Promise.all(
    mourners.map(async ({ offset, witnessed }) => {
      const moments = Object.entries(await witnessed()).map(([what, at]) => [what, Number(at) - offset - killed]);
      // The same names with other times.
      return Object.fromEntries(moments) as W;
    }),
  );
}

const offsetOf = (page: { now(): Promise<number> }): Promise<number> => clockOffsetBy(() => page.now());

/** What nobody can save: the death of a worker that does nothing, and the start of the next. */
async function idleDeaths({ lab, figures }: Context, count: number): Promise<Figure> {
  const pages = [await lab.idle(), await lab.idle()];
  const mourners = await Promise.all(
    pages.map(async (page) => ({ offset: await offsetOf(page), witnessed: () => page.witnessed() })),
  );
  const seen = { fallen: [] as number[], here: [] as number[] };
  for (let i = -WARM_UP; i < count; i++) {
    for (const page of pages) await page.brace();
    for (const { fallen, here } of await kill(() => lab.endIdle(), mourners)) {
      if (i < 0) continue;
      seen.fallen.push(fallen);
      seen.here.push(here);
    }
  }
  await lab.closeTabs();
  const group = "faults: a SharedWorker without the runtime dies, two tabs";
  const first = figure(group, "death → the next one's first message", "ms", seen.here);
  figures.push(figure(group, "death → its Web Lock falls", "ms", seen.fallen), first);
  return first;
}

interface Scene {
  readonly lab: Lab;
  /** Words of the run before its host dies. */
  readonly words: number;
  /** Where the follower is: in the host that dies, or in another one. */
  readonly follower: "same host" | "other host";
  readonly agentId?: Doomed;
  /** Of the tab that ran, and of the one that followed. */
  readonly next: readonly [runs: Next, follows: Next];
}

const NOTHING = ["nothing", "nothing"] as const;

interface Deaths {
  readonly runs: Witness[];
  readonly follows: Witness[];
}

/** A tab runs an agent, another one follows, and the host of the run dies: again and again. */
export async function deaths(
  { lab, words, follower, agentId = "hanging", next }: Scene,
  count: number,
): Promise<Deaths> {
  const host = freshHost();
  const { dbName } = host;
  const runs: Remote<TabBench> = await lab.tab(host);
  const follows = await lab.tab(follower === "same host" ? host : { ...host, host: "b" });
  const tabs = await Promise.all([runs, follows].map(async (page) => ({ page, offset: await offsetOf(page) })));
  const seen: Deaths = { runs: [], follows: [] };
  for (let i = -WARM_UP; i < count; i++) {
    const livesBy = stamp();
    const threadId = crypto.randomUUID();
    await follows.attend(HOST, threadId, agentId);
    await runs.doom(HOST, threadId, words, agentId);
    await follows.said(threadId, words);
    const hostId = await runs.hostIdOf(HOST);
    for (const [at, { page }] of tabs.entries()) await page.brace(HOST, threadId, { dbName, hostId }, next[at]!);
    await new Promise((resolve) => setTimeout(resolve, livesBy + HOST_LIVES_MS - stamp()));
    const mourners = tabs.map(({ page, offset }) => ({ offset, witnessed: () => page.witnessed(threadId) }));
    const [ofRuns, ofFollows] = await kill(() => lab.endHost(host), mourners);
    if (i < 0) continue;
    seen.runs.push(ofRuns!);
    seen.follows.push(ofFollows!);
  }
  await lab.closeTabs();
  return seen;
}

/** Adds rows of a group: what `pick` reads off each witness. */
const rowsOf =
  ({ figures }: Context, group: string) =>
  (name: string, seen: readonly Witness[], pick: (it: Witness) => number, beside?: string): void =>
    void figures.push(figure(`faults: ${group}`, name, "ms", seen.map(pick), beside));

const deltasOf = (words: number): string => `${words.toLocaleString("en-US")} deltas in the live run`;

async function onlyHostDies(context: Context, words: number, count: number, floor: Figure): Promise<void> {
  const { runs, follows } = await deaths({ ...context, words, follower: "same host", next: NOTHING }, count);
  const both = [...runs, ...follows];
  const row = rowsOf(context, `the only host dies, two tabs, ${deltasOf(words)}`);
  const { median, p99 } = floor;
  const beside = `${PROTOTYPE_DEATH}; without the runtime ${shown(median)}${p99 === undefined ? "" : `, p99 ${shown(p99)}`}`;
  row("death → first event (RUN_BROKEN), tab that ran", runs, ({ first }) => first, beside);
  row("death → first event (RUN_BROKEN), tab that followed", follows, ({ first }) => first, beside);
  row("of it: death → life lock falls", both, ({ fallen }) => fallen);
  row("of it: life lock falls → connected to the next host", both, ({ connected, fallen }) => connected - fallen);
  row("of it: connected → first event", both, ({ first, connected }) => first - connected);
  row("life lock falls → first event", both, ({ first, fallen }) => first - fallen);
}

async function runsAgain(context: Context, count: number): Promise<void> {
  const { runs } = await deaths({ ...context, words: FEW, follower: "same host", next: ["run", "nothing"] }, count);
  const row = rowsOf(context, "the only host dies, the tab that ran runs again on RUN_BROKEN");
  row("death → first event of the next run", runs, ({ again }) => again!);
  row("of it: RUN_BROKEN → first event of the next run", runs, ({ again, first }) => again! - first);
}

async function anotherHostIsThere(context: Context, count: number): Promise<void> {
  const { follows } = await deaths({ ...context, words: FEW, follower: "other host", next: NOTHING }, count);
  const row = rowsOf(context, `a host dies, its follower has another one, ${deltasOf(FEW)}`);
  row("death → first event (RUN_BROKEN)", follows, ({ first }) => first);
  row("of it: life lock falls → first event", follows, ({ first, fallen }) => first - fallen);
}

async function hostDeaths(context: Context): Promise<void> {
  const { quick, show } = context;
  const count = quick ? 5 : 30;
  const floor = await idleDeaths(context, count);
  for (const words of [FEW, MANY]) {
    await onlyHostDies(context, words, count, floor);
    show();
  }
  await runsAgain(context, count);
  await anotherHostIsThere(context, count);
}

/** What refusing, stopping and the death of a host cost those who wait. */
export async function faults(context: Context): Promise<void> {
  await refuseAndStop(context);
  context.show();
  await hostDeaths(context);
}
