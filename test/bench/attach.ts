import { median, ratio } from "./beside.js";
import type { Context } from "./context.js";
import { figure, inTurn, shown } from "./figures.js";
import { freshHost, HOST, type Remote } from "./lab.js";
import type { TabBench } from "./pages/tab.js";

/** Pages of the newest messages that an agent is attached with as well. */
const PAGES: readonly number[] = [50];

/** Messages that one call of a page makes: it must end within its deadline. */
const TOLD_AT_ONCE = 1_000;

/** What takes longer is not waited for, in ms: a call of a page must end within its deadline. */
const CAP_MS = 30_000;

/** What the first prototype took: to a LocalAgent's messages. */
const PROTOTYPE: Readonly<Record<number, string>> = { 100: "7", 1_000: "28", 10_000: "247" };

const BY_REPLAY = "compacted events through the client's connectAgent";

const many = (count: number): string => count.toLocaleString("en-US");

/** Makes a thread of `count` messages in runs of ten. */
export async function tellThread(tab: Remote<TabBench>, threadId: string, count: number): Promise<void> {
  for (let i = 0; i < count; i += TOLD_AT_ONCE) await tab.tell(HOST, threadId, i, Math.min(count, i + TOLD_AT_ONCE));
}

/** The client's own way in a thread that was smaller. */
interface Replayed {
  readonly count: number;
  readonly ms: number;
}

/** Twice as long is four times as slow: the client copies all messages for each event. */
const replayMs = (count: number, smaller: Replayed | undefined): number =>
  smaller === undefined ? 0 : smaller.ms * (count / smaller.count) ** 2;

async function attachTo(context: Context, count: number, smaller: Replayed | undefined): Promise<Replayed | undefined> {
  const { lab, samples, figures } = context;
  const group = `attach: a thread of ${many(count)} messages of 500 characters, ten in each run`;
  const row = (name: string, values: readonly number[], ...beside: readonly string[]): void =>
    void figures.push(figure(group, name, "ms", values, beside.join(", ")));

  const raw = await lab.raw();
  await raw.tell(count);
  const host = freshHost();
  const tab = await lab.tab(host);
  const threadId = `told-${count}`;
  await tellThread(tab, threadId, count);
  const once = { key: HOST, threadId, count };
  /** A host that nobody has asked anything. */
  const cold = async (messageLimit?: number): Promise<number> => {
    const config = { ...host, host: `cold ${crypto.randomUUID()}` };
    await tab.connect(config.host, config);
    const ms = await tab.attachByAgent({ ...once, key: config.host }, messageLimit);
    await tab.disconnect(config.host);
    await lab.endHost(config);
    return ms;
  };

  const { here, given, frame, agent, read } = await inTurn(samples, {
    here: () => raw.toldHere(count),
    given: () => raw.told(count),
    frame: () => tab.attachByFrame(once),
    agent: () => tab.attachByAgent(once),
    read: () => cold(),
  });
  const besideRaw = (values: readonly number[]): string[] => [
    ...ratio(median(values), median(here), "getAll()"),
    ...ratio(median(values), median(given), "getAll() and an answer"),
  ];
  row("raw: getAll() of as many records, in a worker", here);
  row("raw: the same and a comlink answer that has them", given);
  row("the frame with the snapshot, host knows the thread", frame, ...besideRaw(frame));
  row(
    "a LocalAgent's messages, host knows the thread",
    agent,
    ...besideRaw(agent),
    `the prototype: ${PROTOTYPE[count]}`,
  );
  row("a LocalAgent's messages, host has to read it", read, ...besideRaw(read));
  for (const page of PAGES) {
    const paged = await inTurn(samples, { agent: () => tab.attachByAgent(once, page), read: () => cold(page) });
    row(
      `the newest ${page} only, host knows the thread`,
      paged.agent,
      ...ratio(median(paged.agent), median(agent), "all"),
    );
    row(`the newest ${page} only, host has to read it`, paged.read, ...ratio(median(paged.read), median(read), "all"));
  }

  const expected = replayMs(count, smaller);
  if (smaller !== undefined && expected > CAP_MS) {
    row(
      BY_REPLAY,
      [],
      `skipped: ${many(smaller.count)} took ${shown(smaller.ms)} ms, so about ${shown(expected / 1_000)} s`,
    );
    await lab.closeTabs();
    return undefined;
  }
  const handedOut: number[] = [];
  const { applied } = await inTurn(samples, {
    applied: async () => {
      const times = await tab.attachByReplay(once);
      handedOut.push(times.handedOut);
      return times.applied;
    },
  });
  await lab.closeTabs();
  row("compacted events, handed out by the host", handedOut.slice(1));
  const facts = count === 1_000 ? ["CopilotKit's runner took 663"] : [];
  row(BY_REPLAY, applied, ...ratio(median(applied), median(agent), "LocalAgent"), ...facts);
  return { count, ms: median(applied) };
}

/** Attaching to threads that are settled, by how long they are. */
export async function attach(context: Context): Promise<void> {
  let replayed: Replayed | undefined;
  for (const count of context.quick ? [100, 1_000] : [100, 1_000, 10_000]) {
    replayed = await attachTo(context, count, replayed);
    context.show();
  }
}
