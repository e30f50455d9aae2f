import "fake-indexeddb/auto";
import { PROTOCOL_VERSION } from "@ag-ui/core";
import fc from "fast-check";
import { IndexedDBAgentRunner, InMemoryAgentRunner } from "ag-ui-local-runtime";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { LocalAgentRunner } from "../../../../src/runner/local-agent-runner.js";
import { times } from "../../property.js";
import { freshDb, rebuild, replay } from "../../runner/kit.js";
import { quietly } from "./clients.js";
import { ContractBench, waits } from "./contract-bench.js";
import { contractRuntime, handlerWay } from "./in-process.js";
import { EventReader, joined, type Read } from "./reading.js";

/** One thing that somebody does with a thread. Each of them is allowed at any time. */
type Operation =
  | {
      readonly is: "run";
      readonly thread: number;
      readonly agentId: string;
      readonly id: number;
      readonly reads: number;
    }
  | { readonly is: "connect"; readonly thread: number; readonly reads: number }
  | { readonly is: "suggest"; readonly thread: number; readonly reads: number }
  | { readonly is: "stop"; readonly thread: number; readonly id: number | undefined }
  | { readonly is: "rename" | "archive" | "delete" | "messages"; readonly thread: number }
  | { readonly is: "letOn" };

const thread = fc.nat(2);
/** How many events are read before the reader leaves; most stay to the end. */
const reads = fc.constantFrom(0, 1, 3, 8, Infinity, Infinity, Infinity);
/** Few, so that runs are asked for again. */
const id = fc.nat(5);

const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      is: fc.constant("run" as const),
      thread,
      agentId: fc.constantFrom("echo", "rich", "stepper", "holder", "thrower", "early", "stubborn"),
      id,
      reads,
    }),
  },
  { weight: 3, arbitrary: fc.record({ is: fc.constant("connect" as const), thread, reads }) },
  { weight: 1, arbitrary: fc.record({ is: fc.constant("suggest" as const), thread, reads }) },
  {
    weight: 2,
    arbitrary: fc.record({ is: fc.constant("stop" as const), thread, id: fc.option(id, { nil: undefined }) }),
  },
  { weight: 1, arbitrary: fc.record({ is: fc.constantFrom("rename", "archive", "delete", "messages"), thread }) },
  { weight: 1, arbitrary: fc.constant({ is: "letOn" as const }) },
);

/** What may be said of each. A thread that was deleted under a run is gone (410) for who asks for that run. */
const ALLOWED: Readonly<Record<Operation["is"], readonly number[]>> = {
  run: [200, 409, 410],
  connect: [200],
  suggest: [200],
  stop: [200],
  rename: [200, 404],
  archive: [200, 404],
  delete: [200, 404],
  messages: [200],
  letOn: [200],
};

const GATE = "gate";

/** Who speaks less is handed events that are rewritten. */
const SPEAKS = { protocolVersion: PROTOCOL_VERSION };

class World {
  readonly bench: ContractBench;
  private readonly reading: Promise<void>[] = [];
  /** Readers that stayed: what they have of a run. */
  readonly stayed: { readonly threadId: string; readonly runId: string; readonly events: readonly Read[] }[] = [];
  /** Threads that were deleted once: a run of them may be another one than that which a reader had, event by event alike. */
  readonly deleted = new Set<string>();
  private gate = 0;

  constructor(
    readonly runner: LocalAgentRunner,
    private readonly name: string,
  ) {
    this.bench = new ContractBench(handlerWay(contractRuntime({ runner })));
  }

  threadId(n: number): string {
    return `${this.name}-t${n}`;
  }

  async do(one: Operation): Promise<void> {
    const answer = await this.bench.patience.within(this.ask(one), `an answer to ${JSON.stringify(one)}`);
    expect(ALLOWED[one.is], `${JSON.stringify(one)}: ${answer.status}`).toContain(answer.status);
    const isStream = answer.headers.get("Content-Type")?.startsWith("text/event-stream") === true;
    if (isStream) this.reading.push(this.read(one, answer));
    else await answer.text();
  }

  /** Everything that may still run is let on or stopped; everybody who reads has all. */
  async end(): Promise<void> {
    await this.bench.open(this.gateName);
    for (const n of [0, 1, 2]) {
      const threadId = this.threadId(n);
      await this.bench.patience.until(async () => {
        await this.bench.stop(threadId);
        return !(await this.runner.isRunning({ threadId }));
      }, "the end of all runs");
    }
    await this.bench.patience.within(Promise.all(this.reading), "the end of all that is read");
  }

  private get gateName(): string {
    return `${this.name}-${GATE}-${this.gate}`;
  }

  private async read(one: Operation, answer: Response): Promise<void> {
    const reader = new EventReader(answer);
    const count = "reads" in one ? one.reads : Infinity;
    try {
      while (reader.read.length < count) {
        const next = await reader.next();
        if (next === undefined) {
          if (one.is === "run") this.stayed.push({ ...this.runOf(one), events: reader.read });
          return;
        }
        // Nobody stops it.
        if (one.is === "suggest" && waits(next)) break;
      }
      await reader.leave();
    } catch {
      // The thread was deleted under its reader: it is told so by a stream that fails.
    }
  }

  private runOf(one: { readonly thread: number; readonly id: number; readonly agentId?: string }) {
    return { threadId: this.threadId(one.thread), runId: `r${one.id}` };
  }

  private async ask(one: Operation): Promise<Response> {
    const { bench } = this;
    if (one.is === "letOn") {
      const gate = this.gateName;
      this.gate++;
      await bench.open(gate);
      return new Response("");
    }
    const threadId = this.threadId(one.thread);
    const props = { gate: this.gateName, open: ["text", "step"] as const };
    switch (one.is) {
      case "run":
        return bench.ask("run", one.agentId, { ...this.runOf(one), props, says: one.agentId, input: SPEAKS });
      case "connect":
        return bench.ask("connect", "echo", { threadId, input: { messages: [], ...SPEAKS } });
      case "suggest":
        return bench.ask("suggest", "holder", { threadId, props });
      case "stop":
        return bench.stop(threadId, one.id === undefined ? undefined : { runId: `r${one.id}` });
      case "rename":
        return bench.post(`/threads/${threadId}`, { name: "x" }, { method: "PATCH" });
      case "archive":
        return bench.post(`/threads/${threadId}/archive`, {});
      case "delete":
        this.deleted.add(threadId);
        return bench.way.request(`/threads/${threadId}`, { method: "DELETE" });
      case "messages":
        return bench.get(`/threads/${threadId}/messages`);
    }
  }
}

const TERMINAL: readonly string[] = ["RUN_FINISHED", "RUN_ERROR"];

/** What holds when all is over. */
async function check(world: World): Promise<void> {
  const { bench, runner } = world;
  for (const n of [0, 1, 2]) {
    const threadId = world.threadId(n);
    const events = (await bench.history(threadId, { input: SPEAKS })).map(({ event }) => event);
    const last = events.at(-1);
    if (last !== undefined) expect(TERMINAL).toContain(last.type);

    // Who connects has what the log says, by events and by snapshot.
    const byConnect = await rebuild(events);
    const byLog = await rebuild(await replay(runner, threadId));
    expect(byConnect).toEqual(byLog);
    expect(byConnect.messages).toEqual(await runner.getThreadMessages(threadId));
    const ids = ({ messages }: { readonly messages: readonly { readonly id: unknown }[] }) =>
      messages.map(({ id: one }) => one);
    expect(ids({ messages: (await bench.messages(threadId)) as { id: unknown }[] })).toEqual(ids(byConnect));

    // Each run ended once.
    const settled = await runner.listRuns(threadId);
    for (const run of settled) {
      expect(run.status).not.toBe("running");
      const recorded = await runner.getRunEvents(run.runId, { threadId });
      expect(recorded.filter(({ event }) => TERMINAL.includes(event.type))).toHaveLength(1);
    }
    for (const { runId, events: read } of world.stayed.filter((one) => one.threadId === threadId)) {
      const ended = read.filter(({ event }) => TERMINAL.includes(event.type));
      expect(ended, `a reader of ${runId}`).toHaveLength(1);
      if (world.deleted.has(threadId)) continue;
      const recorded = await runner.getRunEvents(runId, { threadId });
      expect(joined(recorded)).toEqual(joined(withoutBase(read, recorded)));
    }
    await bench.expectFree(threadId);
  }
  // What is recorded nowhere ends when its reader has gone.
  await vi.waitFor(async () =>
    expect(await (await bench.get("/health")).json()).toMatchObject({ status: "ok", liveThreads: 0 }),
  );
}

/**
 * What a reader was handed of its run: the state that it starts from, where the log does not say it, is no event of it. It
 * may be the one that the agent says next.
 */
function withoutBase(read: readonly Read[], recorded: readonly Placed[]): readonly Read[] {
  return snapshotsAfterStart(read) > snapshotsAfterStart(recorded) ? read.toSpliced(1, 1) : read;
}

function snapshotsAfterStart(events: readonly Placed[]): number {
  const end = events.findIndex(({ event }, at) => at > 0 && event.type !== "STATE_SNAPSHOT");
  return end < 0 ? events.length - 1 : end - 1;
}

type Placed = Pick<Read, "event">;

const RUNNERS: readonly (readonly [string, () => LocalAgentRunner])[] = [
  ["in memory", () => new InMemoryAgentRunner({ store: "isolated", stopGraceMs: 20 })],
  ["on IndexedDB", () => new IndexedDBAgentRunner({ dbName: freshDb(), stopGraceMs: 20 })],
];

describe.each(RUNNERS)("whatever is done with a few threads at once (%s)", (_, makeRunner) => {
  test("no thread is wedged, and connect says what the log says", async () => {
    const runner = makeRunner();
    onTestFinished(() => runner.close());
    let worlds = 0;
    await quietly(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(fc.array(operation, { maxLength: 8 }), { minLength: 1, maxLength: 4 }),
          async (people) => {
            const world = new World(runner, `w${worlds++}`);
            await Promise.all(
              people.map(async (operations) => {
                for (const one of operations) await world.do(one);
              }),
            );
            await world.end();
            await check(world);
          },
        ),
        times(40),
      ),
    );
  });
});
