import fc from "fast-check";
import { filter, firstValueFrom } from "rxjs";
import { expect, test, vi } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { startHost } from "../../../src/runtime/node.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { agentOf, counter, freshDb, quiet } from "../runner/kit.js";
import { times } from "../property.js";
import { lineOf, MemoryServer, passes } from "./kit.js";
import { MemorySpace } from "./memory-space.js";
import { ask } from "./servers-kit.js";

/*
 * Two browsers ask two servers for runs, whatever is cut, restarted and stopped: in the end both show the same, what was
 * answered is there, no thread is stuck, and no run was executed twice but where its server was cut off.
 */

const THREADS = ["t0", "t1"] as const;

const browser = fc.nat(1);
const server = fc.nat(1);
const thread = fc.nat(THREADS.length - 1);
const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant("ask" as const), browser, thread, slow: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("stop" as const, "delete" as const), browser, thread }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("cut" as const), browser, on: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("cutServer" as const), server, on: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const), browser }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("restartServer" as const), server }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("letOn" as const) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("pause" as const) }) },
  ),
  { minLength: 4, maxLength: 20 },
);
type Step = typeof steps extends fc.Arbitrary<readonly (infer T)[]> ? T : never;

/** Of so many answers of the space, one is lost; 0: none. */
const everyLost = fc.constantFrom(0, 0, 7, 4);

class Play {
  private readonly space = new MemoryServer();
  private readonly executed = new Map<string, number>();
  private gates: (() => void)[] = [];
  private isOpen = false;
  private readonly story: string[] = [];
  private readonly answered: { readonly threadId: string; readonly runId: string }[] = [];
  private readonly deleted = new Set<string>();
  private readonly going: Promise<unknown>[] = [];
  private asks = 0;
  private answers = 0;
  private readonly names = [freshDb(), freshDb()];
  private readonly browsers = [this.browser(0), this.browser(1)];
  private readonly servers = [this.server(0), this.server(1)];

  constructor(private readonly loses: number) {}

  async go(todo: readonly Step[]): Promise<void> {
    try {
      for (const step of todo) await this.take(step);
      this.letOn(true);
      for (const { at } of this.browsers) at.connect(true);
      for (const one of this.servers) (await one).at.connect(true);
      await Promise.all(this.going);
      await this.areTheSame();
      for (const n of [0, 1]) {
        for (const threadId of THREADS) {
          await vi.waitFor(() => this.ask(n, threadId, false), { timeout: 60_000, interval: 50 });
          await this.areTheSame();
        }
      }
      const isCut = todo.some((step) => step.do === "cutServer" || step.do === "restartServer");
      if (!isCut) expect([...this.executed].filter(([, count]) => count > 1)).toEqual([]);
    } catch (error) {
      const stands = await Promise.all(
        this.browsers.map(({ runtime }) => Promise.all(THREADS.map((id) => stand(runtime, id)))),
      );
      const entries = this.space.entries.flatMap(lineOf);
      throw new Error([...this.told, ...entries, ...stands.map((one) => JSON.stringify(one))].join("\n"), {
        cause: error,
      });
    } finally {
      this.letOn(true);
      for (const { runtime, host } of this.browsers) {
        await runtime.close();
        await host.close();
      }
      for (const one of this.servers) await (await one).host.close();
    }
  }

  /** What happened, for whoever looks into a failure; what is said again and again, once. */
  private get told(): readonly string[] {
    const plain = (line: string | undefined): string | undefined => line?.replaceAll(/-\d+\b/gu, "");
    return this.story.filter((line, at) => plain(line) !== plain(this.story[at - 2]));
  }

  private async take(step: Step): Promise<void> {
    const threadId = "thread" in step ? THREADS[step.thread]! : "";
    const one = this.browsers["browser" in step ? step.browser : 0]!;
    this.story.push(JSON.stringify(step));
    switch (step.do) {
      case "ask":
        this.going.push(this.ask(step.browser, threadId, step.slow).catch(() => undefined));
        break;
      case "stop":
        await one.runtime
          .runner()
          .stop({ threadId })
          .catch(() => false);
        break;
      case "delete":
        this.deleted.add(threadId);
        await one.runtime.threads.delete(threadId).catch(() => false);
        break;
      case "cut":
        one.at.connect(step.on);
        break;
      case "cutServer":
        (await this.servers[step.server]!).at.connect(step.on);
        break;
      case "restart":
        await one.runtime.close();
        await one.host.close();
        this.browsers[step.browser] = this.browser(step.browser);
        break;
      case "restartServer":
        await (await this.servers[step.server]!).host.close();
        this.servers[step.server] = this.server(step.server);
        break;
      case "letOn":
        this.letOn(false);
        break;
      case "pause":
        await passes(50);
    }
  }

  private async ask(n: number, threadId: string, slow: boolean): Promise<void> {
    const { runtime } = this.browsers[n]!;
    const runId = `${slow ? "slow" : "fast"}-${n}-${++this.asks}`;
    this.story.push(`ask ${threadId} ${runId}`);
    try {
      const { newMessages } = await ask(runtime, "heavy", threadId, runId);
      // It may have been stopped before it began: then it is in no log.
      if (newMessages.length === 0) return void this.story.push(`stopped ${runId}`);
      this.story.push(`answered ${runId}`);
      this.answered.push({ threadId, runId });
    } catch (error) {
      this.story.push(`${runId}: ${String(error)}`);
      throw error;
    }
  }

  private letOn(forEver: boolean): void {
    this.isOpen ||= forEver;
    this.gates.splice(0).forEach((open) => open());
  }

  private async areTheSame(): Promise<void> {
    await vi.waitFor(
      async () => {
        for (const threadId of THREADS) {
          const [one, other] = await Promise.all(this.browsers.map(({ runtime }) => stand(runtime, threadId)));
          expect(other).toEqual(one);
          expect(JSON.stringify(one)).not.toContain("running");
          if (this.deleted.has(threadId)) continue;
          const missing = this.answered.filter(
            (run) => run.threadId === threadId && !Object.hasOwn(one!.tree, run.runId),
          );
          expect(missing).toEqual([]);
        }
      },
      { timeout: 60_000, interval: 50 },
    );
  }

  /** The others have their answers when their entries were read. */
  private way(n: number): MemorySpace {
    return new MemorySpace(this.space, {
      lateAnswer: () => passes(4 * n),
      loseAnswer: () => this.loses > 0 && ++this.answers % this.loses === 0,
    });
  }

  private browser(n: number) {
    const at = this.way(n);
    const host = serveRuntime({
      dbName: this.names[n]!,
      agents: {},
      sync: { space: at, device: `Browser ${n}` },
      logger: quiet,
    });
    return { at, host, runtime: connectRuntime({ hosts: { page: async () => host.connect() } }) };
  }

  private async server(n: number) {
    const at = this.way(n);
    const wait = (runId: string): Promise<void> | undefined =>
      this.isOpen || !runId.startsWith("slow") ? undefined : new Promise((resolve) => this.gates.push(resolve));
    const heavy = agentOf((input, context) => {
      this.story.push(`server ${n} executes ${input.runId}`);
      this.executed.set(input.runId, (this.executed.get(input.runId) ?? 0) + 1);
      return counter(3, (step) => (step === 1 ? wait(input.runId) : undefined))(input, context);
    });
    const host = await startHost({ agents: { heavy }, logger: quiet, sync: { space: at, device: `Server ${n}` } });
    return { at, host };
  }
}

type Runtime = ReturnType<typeof connectRuntime>;

async function stand(runtime: Runtime, threadId: string) {
  await firstValueFrom(runtime.status$.pipe(filter((status) => "sync" in status)));
  const { runs } = { runs: (await runtime.runner().listRuns(threadId, { limit: 200 })).toReversed() };
  const idOf = new Map(runs.map(({ runIndex, runId }) => [runIndex, runId]));
  const tree = Object.fromEntries(
    runs
      .map(
        ({ runId, prevRunIndex, status }) => [runId, { prev: idOf.get(prevRunIndex ?? -1) ?? null, status }] as const,
      )
      .toSorted(([one], [other]) => (one < other ? -1 : 1)),
  );
  const { messages } = await runtime.threads.messages(threadId);
  return { tree, texts: messages.map(({ content }) => content) };
}

test("whatever browsers ask of servers, and whatever is cut: both come to the same, and no thread is stuck", async () => {
  const property = fc.asyncProperty(steps, everyLost, (todo, every) => new Play(every).go(todo));
  await fc.assert(property, { ...times(6), endOnFailure: true });
}, 1_200_000);
