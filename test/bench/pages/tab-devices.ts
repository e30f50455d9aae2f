import type { RuntimeConnection, RuntimeStatus } from "ag-ui-local-runtime/client";
import { filter, firstValueFrom } from "rxjs";
import { stamp } from "./stamps.js";
import { hostOf } from "./tab-hosts.js";

/** Threads of a page of the list. */
const PAGE = 500;
/** How often what nobody tells is looked at, in ms. */
const LOOK_MS = 10;

/** What a new device is to show. */
export interface Expected {
  readonly threads: number;
  /** The thread that is opened once the list is whole. */
  readonly opened: { readonly threadId: string; readonly messages: number; readonly characters: number };
}

/** When a new device showed what, in ms since its tab began to connect. */
export interface CaughtUp {
  /** Any thread in the list. */
  readonly firstListed: number;
  /** All threads in the list. */
  readonly listed: number;
  /** The messages of the opened thread. */
  readonly shown: number;
  /** No thread is absent any more. */
  readonly all: number;
}

type Sync = NonNullable<Extract<RuntimeStatus, { is: "connected" }>["sync"]>;

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, LOOK_MS));

async function until(runtime: RuntimeConnection, is: (sync: Sync) => boolean): Promise<void> {
  await firstValueFrom(
    runtime.status$.pipe(filter((status) => status.is === "connected" && status.sync !== undefined && is(status.sync))),
  );
}

/** How many threads the list has, and how many of them are absent. */
async function countOf(runtime: RuntimeConnection): Promise<{ threads: number; absent: number }> {
  const ids = new Set<string>();
  let absent = 0;
  let before: number | undefined;
  for (;;) {
    const page = await runtime.threads.list({ limit: PAGE, ...(before !== undefined && { before }) });
    for (const thread of page) {
      ids.add(thread.threadId);
      if (thread.absent) absent++;
    }
    before = page.at(-1)?.updatedAt;
    if (page.length < PAGE) return { threads: ids.size, absent };
  }
}

async function catchUp(
  key: string,
  { threads, opened }: Expected,
  tell: (so: Partial<CaughtUp>) => void,
): Promise<void> {
  const { runtime, since } = hostOf(key);
  const passed = (): number => performance.now() - since;
  while ((await runtime.threads.list({ limit: 1 })).length === 0) await pause();
  const firstListed = passed();
  await until(runtime, ({ isCurrent }) => isCurrent);
  while ((await countOf(runtime)).threads < threads) await pause();
  const listed = passed();
  const { threadId } = opened;
  const agent = runtime.agent("telling", { threadId });
  await agent.connectAgent();
  const shown = passed();
  const answers = agent.messages.filter(({ role }) => role === "assistant");
  const characters = answers.reduce((sum, { content }) => sum + (typeof content === "string" ? content.length : 0), 0);
  if (agent.messages.length !== opened.messages || characters !== opened.characters)
    throw new Error(`${agent.messages.length} messages with answers of ${characters} characters: ${threadId}`);
  tell({ firstListed, listed, shown });
  for (;;) {
    await until(runtime, ({ isCurrent, toCome }) => isCurrent && toCome === undefined);
    const count = await countOf(runtime);
    if (count.threads !== threads) throw new Error(`${count.threads} threads instead of ${threads}`);
    if (count.absent === 0) return tell({ firstListed, listed, shown, all: passed() });
    await pause();
  }
}

const catchingUp = new Map<string, { readonly soFar?: Partial<CaughtUp>; readonly error?: string }>();

/** What the bench asks of a tab of a device that is in step with others. */
export const deviceCalls = {
  /** This tab's clock. */
  clock: stamp,

  /** Resolves when the device has everything that there is. */
  inStep(key: string): Promise<void> {
    return until(hostOf(key).runtime, ({ isCurrent }) => isCurrent);
  },

  /** Resolves when the device has a whole run of the thread. */
  async hasRun(key: string, threadId: string): Promise<void> {
    const { threads } = hostOf(key).runtime;
    for (;;) {
      const thread = await threads.get(threadId);
      if (thread?.lastStatus !== undefined && thread.absent !== true) return;
      await pause();
    }
  },

  /** Begins to look at what comes to a new device; {@link caughtUp} says how it went. */
  beginCatchUp(key: string, expected: Expected): void {
    catchingUp.set(key, {});
    const tell = (soFar: Partial<CaughtUp>): void => void catchingUp.set(key, { soFar });
    catchUp(key, expected, tell).catch((error: unknown) => catchingUp.set(key, { error: String(error) }));
  },

  /** What is there by now: it may take longer than a call may. */
  caughtUp(key: string): Partial<CaughtUp> {
    const { soFar = {}, error } = catchingUp.get(key) ?? {};
    if (error !== undefined) throw new Error(error);
    return soFar;
  },
};
