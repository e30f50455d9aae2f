import { EventType, type AbstractAgent, type BaseEvent } from "@ag-ui/client";
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { agentOf, collect, counter, freshDb, inputOf } from "../runner/kit.js";
import { decodeMessage } from "../../../src/sync/messages.js";
import { pendingIn } from "../../../src/storage/pending-tool-calls.js";
import { systemClock, type Clock } from "../../../src/platform/clock.js";
import { REST_MS } from "../../../src/sync/compacting-threads.js";
import { QUIET_MS } from "../../../src/sync/leaving-threads.js";
import { Encryption } from "../../../src/storage/encryption/encryption.js";
import { fastKey } from "../encryption/fast-key.js";
import { times } from "../property.js";
import { flipped, HostileServer, type Injects } from "./hostile-server.js";
import { lineOf, makeDevice, MemoryServer, passes, sayNow, shown, tree, type Device } from "./kit.js";

/*
 * Three devices and a server, whatever they do and whatever is cut: in the end all show the same, and nothing that ended
 * anywhere is missing.
 */

const DEVICES = ["A", "B", "C"] as const;
const THREADS = ["t0", "t1"] as const;

type Step =
  | {
      readonly do: "run";
      readonly at: number;
      readonly thread: number;
      readonly slow: boolean;
      readonly waits: boolean;
      /** As all answers, under one id. */
      readonly answers: boolean;
      /** It leaves a call of a front-end tool. */
      readonly calls: boolean;
    }
  | { readonly do: "letOn" }
  | { readonly do: "net"; readonly at: number; readonly on: boolean }
  | { readonly do: "title" | "archive" | "stop" | "delete" | "result"; readonly at: number; readonly thread: number }
  /** Another branch is taken up. */
  | { readonly do: "switch"; readonly at: number; readonly thread: number; readonly pick: number }
  | { readonly do: "restart"; readonly at: number }
  | { readonly do: "lose" }
  | { readonly do: "pause" };

const at = fc.nat(DEVICES.length - 1);
const thread = fc.nat(THREADS.length - 1);
const steps = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant("run" as const),
        at,
        thread,
        slow: fc.boolean(),
        waits: fc.boolean(),
        answers: fc.boolean(),
        calls: fc.boolean(),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("letOn" as const) }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant("net" as const), at, on: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("title" as const, "archive" as const), at, thread }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("stop" as const), at, thread }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("delete" as const), at, thread }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("result" as const), at, thread }) },
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant("switch" as const), at, thread, pick: fc.nat(6) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const), at }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("lose" as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("pause" as const) }) },
  ),
  { minLength: 4, maxLength: 24 },
);

/** The third device is new in the space before this step, and has all threads, those that are opened, or one. */
const joins = fc.record({
  joinsAt: fc.nat(12),
  /** Which devices join the entries of threads at rest: a bit for each. */
  compacts: fc.nat(7),
  keeps: fc.constantFrom("all" as const, "opened" as const, "one" as const),
  isHurried: fc.boolean(),
});
type Joins = typeof joins extends fc.Arbitrary<infer T> ? T : never;

interface Ended {
  readonly threadId: string;
  readonly runId: string;
  /** Of an answer: one that was given again is the same run, if its device knows of it. */
  readonly what?: number;
}

/** Threads leave at once, and are at rest soon. */
const hasty: Clock = {
  ...systemClock,
  after: (ms, signal) => systemClock.after(ms === QUIET_MS ? 0 : ms >= REST_MS && ms <= 2 * REST_MS ? 3 : ms, signal),
};

/** A database that takes so long cannot be opened, in ms. */
const OPEN_MS = 10_000;

/** As well, and who is cut off is away after a moment. */
const hurried: Clock = {
  ...hasty,
  elapsed: () => systemClock.elapsed() * 20,
  after: (ms, signal) => hasty.after(ms >= 400 && ms < OPEN_MS ? ms / 20 : ms, signal),
};

/** Under an id that other answers have, too. @param what some answers are equal */
const answer = ({ runner }: Device, threadId: string, agent: AbstractAgent, what: number) =>
  collect(
    runner.run({
      threadId,
      agent,
      input: {
        ...inputOf(threadId, "answer", []),
        resume: [{ interruptId: "i", status: "resolved", payload: what }],
      },
    }),
  );

const tool = { name: "ask", description: "", parameters: {} };

/** Its run leaves a call of a front-end tool. */
const calling = ({ runner }: Device, threadId: string, runId: string, gate: Promise<void> | undefined) => {
  const agent = agentOf(async function* (): AsyncGenerator<BaseEvent> {
    await gate;
    const call = { toolCallId: `${runId}-call`, toolCallName: tool.name, delta: "{}" };
    yield { type: EventType.TOOL_CALL_CHUNK, ...call } as BaseEvent;
  });
  return collect(runner.run({ threadId, agent, input: { ...inputOf(threadId, runId), tools: [tool] } }));
};

/** Somebody gives the first call that waits there its result. Errors: RunnerError `call-over` */
async function giveResult({ runner, store }: Device, threadId: string, token: string): Promise<void> {
  const open = pendingIn(await store.head(threadId))?.calls.find(({ status }) => status === "open");
  if (open === undefined) return;
  const { toolCallId } = open;
  await runner.answerToolCall({ threadId, toolCallId, token, by: "user", content: token });
}

const started = async <T>(start: () => Promise<T>): Promise<T> => start();

async function play(
  todo: readonly Step[],
  { joinsAt, keeps, compacts, isHurried }: Joins,
  isEncrypted: boolean,
  server: MemoryServer,
): Promise<void> {
  const names = DEVICES.map(() => freshDb());
  const make = (n: number): Device =>
    makeDevice(server, DEVICES[n]!, {
      dbName: names[n]!,
      ...(n === 2 && keeps !== "all" && { keep: "opened" }),
      clock: isHurried ? hurried : hasty,
      ...(n === 2 && keeps === "one" && { maxThreads: 1 }),
      ...(((compacts >> n) & 1) === 1 && { compactFrom: 4 }),
      // The first has its answers at once, the others when their entries were read.
      faults: { lateAnswer: () => passes(4 * n) },
      ...(isEncrypted && { encryption: new Encryption({ key: fastKey }) }),
    });
  const devices = [make(0), make(1)];
  let gates: (() => void)[] = [];
  const letOn = (): void => gates.splice(0).forEach((open) => open());
  const going: Promise<unknown>[] = [];
  const ended: Ended[] = [];
  const deleted = new Set<string>();
  let runs = 0;
  try {
    for (const [index, step] of todo.entries()) {
      if (index === joinsAt) devices.push(make(2));
      const threadId = "thread" in step ? THREADS[step.thread]! : "";
      const one = devices["at" in step ? step.at : 0];
      if (one === undefined) continue;
      switch (step.do) {
        case "run": {
          const what = ++runs % 5;
          const runId = step.answers ? "answer" : `${one.name}${++runs}`;
          const gate = step.slow ? new Promise<void>((resolve) => gates.push(resolve)) : undefined;
          const agent = agentOf(counter(3, (n) => (n === 1 ? gate : undefined)));
          const run = started(() =>
            step.answers
              ? answer(one, threadId, agent, what)
              : step.calls
                ? calling(one, threadId, runId, gate)
                : sayNow(one, threadId, runId, agent),
          ).then(
            () => ended.push({ threadId, runId, ...(step.answers && { what }) }),
            () => undefined,
          );
          going.push(run);
          if (step.waits && !step.slow) await run;
          break;
        }
        case "letOn":
          letOn();
          break;
        case "net":
          one.space.connect(step.on);
          break;
        case "title":
          await one.runner.updateThread(threadId, { title: `title ${++runs}` }).catch(() => undefined);
          break;
        case "archive":
          await one.runner.updateThread(threadId, { archived: runs % 2 === 0 }).catch(() => undefined);
          break;
        case "stop":
          await one.runner.stop({ threadId });
          break;
        case "delete":
          if (await one.runner.deleteThread(threadId).catch(() => false)) deleted.add(threadId);
          break;
        case "result":
          await giveResult(one, threadId, `result-${++runs}`).catch(() => undefined);
          break;
        case "switch": {
          const all = await one.runner.listRuns(threadId, { limit: 100 }).catch(() => []);
          const { runId = "", runIndex } = all[step.pick % Math.max(all.length, 1)] ?? {};
          if (runIndex !== undefined) await one.runner.activateRun(threadId, runId, runIndex).catch(() => undefined);
          break;
        }
        case "restart":
          await one.close();
          devices[step.at] = make(step.at);
          break;
        case "lose":
          // What has left a device is on the servers and with the others only.
          if (keeps !== "one") server.lose();
          break;
        case "pause":
          await passes(50);
      }
    }
    letOn();
    if (devices.length === 2) devices.push(make(2));
    for (const { space } of devices) space.connect(true);
    await Promise.all(going);
    letOn();
    await allTheSame(devices, ended, deleted);
    // No thread is stuck, and what was said last is everywhere.
    for (const [n, one] of devices.entries()) {
      for (const threadId of THREADS) {
        const runId = `last-${n}`;
        await vi.waitFor(() => started(() => sayNow(one, threadId, runId, agentOf(counter(2)))), {
          timeout: 60_000,
          interval: 20,
        });
        ended.push({ threadId, runId });
        await allTheSame(devices, ended, deleted);
      }
    }
  } catch (error) {
    const sealed = server.entries.filter(({ body }) => typeof decodeMessage(body) !== "object").length;
    const stands = await Promise.all(devices.map(standOf));
    const story = [...server.entries.flatMap(lineOf), `${sealed} entries that only a device can open`, ...stands];
    throw new Error(story.join("\n"), { cause: error });
  } finally {
    gates = [];
    for (const one of devices) await one.close();
  }
}

async function standOf(one: Device): Promise<string> {
  const trees = await Promise.all(
    THREADS.map(async (id) => ({ ...(await listed(one, id)), tree: await tree(one, id) })),
  );
  return `${one.name} ${JSON.stringify(trees)} ${[...new Set(one.said)].slice(0, 3).join("; ")}`;
}

async function allTheSame(
  devices: readonly Device[],
  ended: readonly Ended[],
  deleted: ReadonlySet<string>,
): Promise<void> {
  await vi.waitFor(
    async () => {
      for (const threadId of THREADS) {
        const live = await Promise.all(devices.map((one) => one.runner.isRunning({ threadId })));
        expect(live, `${threadId}: live`).toEqual(devices.map(() => false));
        const [first, ...others] = await Promise.all(
          devices.map(async (one) => ({
            tree: await tree(one, threadId),
            shown: await shown(one, threadId),
            listed: await listed(one, threadId),
          })),
        );
        const results = await Promise.all(devices.map((one) => resultsOf(one, threadId)));
        for (const ofOne of results) {
          for (const [call, token] of ofOne) {
            for (const ofOther of results) expect(ofOther.get(call) ?? token, `${threadId}: ${call}`).toBe(token);
          }
        }
        for (const other of others) expect(other).toEqual(first);
        if (deleted.has(threadId)) continue;
        const here = Object.keys(first!.tree).map((name) => name.split(" ")[0]);
        const its = ended.filter((run) => run.threadId === threadId);
        const isFirst = ({ what }: Ended, index: number): boolean =>
          what === undefined || its.findIndex((run) => run.what === what) === index;
        for (const { runId } of its.filter(isFirst)) {
          const place = here.indexOf(runId);
          expect(place, `${threadId}: ${runId} is missing`).toBeGreaterThanOrEqual(0);
          here.splice(place, 1);
        }
      }
    },
    { timeout: 60_000, interval: 20 },
  );
}

/** Which results are kept for the next run, by call. */
async function resultsOf({ store }: Device, threadId: string): Promise<ReadonlyMap<string, string | undefined>> {
  const calls = pendingIn(await store.head(threadId))?.calls ?? [];
  return new Map(calls.filter(({ status }) => status === "answered").map((call) => [call.toolCallId, call.token]));
}

async function listed({ runner }: Device, threadId: string) {
  const found = await runner.getThread(threadId);
  return found && { title: found.title, archived: found.archived, pinned: found.pinned };
}

/** The entry again, changed and in a thread of the one before. */
const some: Injects = ({ thread: its, body, seq }, all) => [
  [its, body],
  [its, flipped(body, 7 * seq)],
  [all.at(-2)?.thread ?? "elsewhere", body],
];

test.each([
  ["plain", false, () => new MemoryServer()],
  ["encrypted", true, () => new MemoryServer()],
  ["encrypted, while the server adds entries of its own", true, () => new HostileServer(some)],
])(
  "whatever devices do, and whatever is cut: all come to the same (%s)",
  async (_, isEncrypted, makeServer) => {
    const property = fc.asyncProperty(steps, joins, (todo, join) => play(todo, join, isEncrypted, makeServer()));
    await fc.assert(property, { ...times(15), endOnFailure: true });
  },
  600_000,
);
