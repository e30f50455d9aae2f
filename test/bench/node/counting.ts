import "fake-indexeddb/auto";
import type { Message } from "@ag-ui/client";
import { lastValueFrom, tap } from "rxjs";
import { connectRuntime, type LocalAgent, type RuntimeConnection } from "../../../src/client/index.js";
import { IndexedDBAgentRunner } from "../../../src/runner/indexeddb-agent-runner.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { startCounting, type Counts } from "./counters.js";
import { serveCalls } from "./serve.js";
import { isWaiting, tell, tellEnd, TOLD, type Told } from "./told-agents.js";

/**
 * Who runs: `runner`, alone, its Observable subscribed to; `tab`, a tab that runs; `follower`, a tab that follows its
 * thread and runs; `other`, the host runs and a tab follows. Host and tabs are all in this process.
 */
export type Place = "runner" | "tab" | "follower" | "other";

const THREAD = "t";
/** Runs of a thread that is attached to: a question and an answer each. */
const RUNS = 10;
/** Turns of the event loop without anything made after which nothing is under way. */
const QUIET_TURNS = 20;

const counts = startCounting();

/** Calls back once `holds` and nothing is under way; makes no promise. */
function whenQuiet(holds: () => boolean, then: () => void): void {
  let turns = 0;
  let last = counts().promises;
  const look = (): void => {
    const { promises } = counts();
    turns = promises === last && holds() ? turns + 1 : 0;
    last = promises;
    if (turns === QUIET_TURNS) then();
    else setImmediate(look);
  };
  setImmediate(look);
}
const quiet = (holds: () => boolean = () => true): Promise<void> => new Promise((resolve) => whenQuiet(holds, resolve));

const difference = (from: Counts, to: Counts): Counts => ({
  promises: to.promises - from.promises,
  transactions: to.transactions - from.transactions,
  chunks: to.chunks - from.chunks,
});

let names = 0;
const freshName = (what: string): string => `${what}-${++names}`;

function open(dbName: string) {
  const runner = new IndexedDBAgentRunner({ dbName });
  const host = serveRuntime({ runner, agents: TOLD });
  const connections: RuntimeConnection[] = [];
  return {
    runner,
    connect(): RuntimeConnection {
      const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
      connections.push(runtime);
      return runtime;
    },
    async close(): Promise<void> {
      for (const runtime of connections) await runtime.close();
      await host.close();
      await runner.close();
    },
  };
}
type Host = ReturnType<typeof open>;

const user = (id: string): Message => ({ id, role: "user", content: "a question" });
const inputOf = (runId: string) => ({
  threadId: THREAD,
  runId,
  messages: [user(`${runId}-u`)],
  tools: [],
  context: [],
  forwardedProps: {},
  state: {},
});

/** One run of the runner, with one word. */
async function answer({ runner }: Host): Promise<void> {
  const agent = TOLD.class.clone();
  const ended = lastValueFrom(runner.run({ threadId: THREAD, agent, input: inputOf(freshName("r")) }));
  await quiet(isWaiting);
  tell("word");
  await quiet(isWaiting);
  tellEnd();
  await ended;
}

interface Begun {
  readonly ended: Promise<unknown>;
}

/** @param heard called with each word that has got to where it is read */
async function begin(host: Host, place: Place, told: Told, heard: () => void): Promise<Begun> {
  const runId = freshName("r");
  const run = () => host.runner.run({ threadId: THREAD, agent: TOLD[told].clone(), input: inputOf(runId) });
  if (place === "runner") {
    return { ended: lastValueFrom(run().pipe(tap((event) => void ("delta" in event && heard())))) };
  }
  const agent = host.connect().agent(told, { threadId: THREAD });
  if (place !== "tab") agent.follow();
  await agent.connectAgent();
  await quiet();
  agent.subscribe({ onMessagesChanged: ({ messages }) => void (messages.at(-1)?.role === "assistant" && heard()) });
  if (place === "other") {
    // Nobody reads it in the host: that would be counted, too.
    const ended = new Promise<void>((resolve) => agent.subscribe({ onRunFinalized: () => resolve() }));
    run();
    return { ended };
  }
  agent.addMessage(user(`${runId}-u`));
  return { ended: agent.runAgent({ runId }) };
}

/** Transactions of `work` until it calls back. */
async function transactionsUntil(work: (reached: () => void) => Promise<unknown>): Promise<number> {
  await quiet();
  const before = counts();
  let made: Counts | undefined;
  await work(() => (made ??= difference(before, counts())));
  if (made === undefined) throw new Error("not reached");
  return made.transactions;
}

/** Runs an agent of a tab with one word; `reached` is called at its first event. */
async function runOnce(agent: LocalAgent, reached: () => void): Promise<void> {
  agent.addMessage(user(freshName("u")));
  const ended = agent.runAgent({}, { onEvent: reached });
  await quiet(isWaiting);
  tellEnd();
  await ended;
}

const api = {
  /** What each of `words` deltas makes on its way from the agent to where it is read: told when nothing is under way. */
  async perDelta(place: Place, told: Told, words: number): Promise<Counts[]> {
    const host = open(freshName("db"));
    await answer(host);
    let arrived = true;
    const { ended } = await begin(host, place, told, () => (arrived = true));
    await quiet(isWaiting);
    const made: Counts[] = [];
    await new Promise<void>((resolve) => {
      // By callbacks alone: a promise of this loop would be counted.
      const step = (): void => {
        const before = counts();
        arrived = false;
        tell(`${made.length} `);
        whenQuiet(
          () => arrived && isWaiting(),
          () => {
            made.push(difference(before, counts()));
            if (made.length < words) step();
            else resolve();
          },
        );
      };
      step();
    });
    tellEnd();
    await ended;
    await host.close();
    return made;
  },

  /** Transactions of a tab that attaches to a thread, until it has the messages; its host is new, or knows the thread. */
  async attach(hostIs: "new" | "known"): Promise<number> {
    const dbName = freshName("db");
    let host = open(dbName);
    for (let run = 0; run < RUNS; run++) await answer(host);
    if (hostIs === "new") {
      await host.close();
      await quiet();
    }
    const made = await transactionsUntil(async (reached) => {
      if (hostIs === "new") host = open(dbName);
      const agent = host.connect().agent("class", { threadId: THREAD });
      agent.subscribe({ onMessagesChanged: ({ messages }) => void (messages.length === 2 * RUNS && reached()) });
      await agent.connectAgent();
    });
    await host.close();
    return made;
  },

  /** Transactions of `runAgent()` until its first event, in a thread of so many runs. */
  async start(threadIs: "new" | "known"): Promise<number> {
    const host = open(freshName("db"));
    const agent = host.connect().agent("class", { threadId: THREAD });
    // So that the tab is connected.
    await agent.connectAgent();
    if (threadIs === "known") await runOnce(agent, () => undefined);
    const made = await transactionsUntil((reached) => runOnce(agent, reached));
    await host.close();
    return made;
  },
};

export type Counting = typeof api;

serveCalls(api);
