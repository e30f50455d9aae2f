import { filter, firstValueFrom, take } from "rxjs";
import { expect, test, vi } from "vitest";
import type { RuntimeConnection } from "../../../src/client/connect-runtime.js";
import type { LocalAgent } from "../../../src/client/local-agent.js";
import type { RuntimeStatus } from "../../../src/wire/shapes.js";
import { answerOf, halfWay, makeHost, STEPS } from "../client/kit.js";
import { collect, counted, inputOf, user } from "../runner/kit.js";
import { countLasting, type Lasting } from "./lasting.js";

type Connected = RuntimeStatus & { readonly is: "connected" };

/** Waits until this many attachments and tabs are told of. */
const told = (runtime: RuntimeConnection, counts: Partial<Connected>): Promise<RuntimeStatus> =>
  firstValueFrom(
    runtime.status$.pipe(
      filter(
        (status) =>
          status.is === "connected" && Object.entries(counts).every(([key, n]) => Reflect.get(status, key) === n),
      ),
    ),
  );

/** Waits, without a pause, until a reader is where the agent stands still. */
const isThere = (agent: LocalAgent): Promise<void> =>
  vi.waitFor(() => expect(answerOf(agent)).toBe(counted(STEPS / 2)), { interval: 1 });

/** A host with a live run that waits in the middle, and a tab that follows it. */
async function liveThread(): Promise<ReturnType<typeof makeHost> & { runtime: RuntimeConnection; agent: LocalAgent }> {
  const host = makeHost();
  const runtime = host.connect();
  const agent = runtime.agent("counter", { threadId: "t", initialMessages: [user("u")] });
  agent.runAgent().catch(() => undefined);
  await halfWay(agent);
  return { ...host, runtime, agent };
}

/** After `rounds` more of them nothing is left of what `comeAndGo` did: of tabs and attachments these are. */
async function mustLeaveNothing(
  count: () => Promise<Lasting>,
  runtime: RuntimeConnection,
  comeAndGo: () => Promise<void>,
  rounds: number,
): Promise<void> {
  // What is made once, at first use.
  await comeAndGo();
  await comeAndGo();
  await told(runtime, { attachments: 1, tabs: 1 });
  const before = await count();
  for (let round = 0; round < rounds; round++) await comeAndGo();
  await told(runtime, { attachments: 1, tabs: 1 });
  await vi.waitFor(async () => {
    for (const [what, left] of Object.entries(await count())) {
      expect(left, what).toBeLessThanOrEqual(before[what as keyof Lasting]);
    }
  });
}

test("status$ says how much streams to tabs: runs and attachments, until they are left", async () => {
  const { runtime, connect, letOn } = await liveThread();
  await told(runtime, { attachments: 1, tabs: 1 });
  const other = connect();
  const unfollow = other.agent("counter", { threadId: "t" }).follow();
  const reading = other.runner().connect({ threadId: "t" }).subscribe();
  await told(runtime, { attachments: 3, tabs: 2 });
  reading.unsubscribe();
  await told(runtime, { attachments: 2 });
  letOn();
  // The run's own has come to its end, a follower stays.
  await told(runtime, { attachments: 1 });
  unfollow();
  await told(runtime, { attachments: 0 });
});

test("of hundreds of attaches and detaches in the middle of a run nothing is left", async () => {
  const count = countLasting();
  const { runtime } = await liveThread();
  const runner = runtime.runner();
  await mustLeaveNothing(
    count,
    runtime,
    async () => {
      const follower = runtime.agent("counter", { threadId: "t" });
      const unfollow = follower.follow();
      await isThere(follower);
      await firstValueFrom(runner.connect({ threadId: "t", follow: true }));
      await collect(runner.connect({ threadId: "t", replay: "last-run", follow: true }).pipe(take(2)));
      unfollow();
    },
    100,
  );
});

test("of runs that are refused, left alone or read to their end nothing is left", async () => {
  const count = countLasting();
  const { runtime } = await liveThread();
  const runner = runtime.runner();
  const agent = { agentId: "counter" };
  let runs = 0;
  await mustLeaveNothing(
    count,
    runtime,
    async () => {
      const refused = runner.run({ threadId: "t", agent, input: inputOf("t", `refused-${++runs}`) });
      await expect(collect(refused)).rejects.toMatchObject({ code: "thread-busy" });
      const nobody = runner.run({ threadId: "t", agent: { agentId: "nobody" }, input: inputOf("t", "nobody") });
      await expect(collect(nobody)).rejects.toMatchObject({ code: "unknown-agent" });
      const threadId = `other-${runs}`;
      const run = runner.run({ threadId, agent, input: inputOf(threadId, "r") });
      await firstValueFrom(run);
      await collect(run);
      runner.run({ threadId: `unread-${runs}`, agent, input: inputOf(`unread-${runs}`, "r") });
      await vi.waitFor(async () =>
        expect((await runner.getRun("r", { threadId: `unread-${runs}` }))?.status).toBe("finished"),
      );
    },
    15,
  );
});

test("of tabs that come and go nothing is left", async () => {
  const count = countLasting();
  const { runtime, connect } = await liveThread();
  await mustLeaveNothing(
    count,
    runtime,
    async () => {
      const tab = connect();
      tab.threads.watch().subscribe();
      const agent = tab.agent("counter", { threadId: "t" });
      agent.follow();
      await isThere(agent);
      await tab.close();
    },
    15,
  );
});
