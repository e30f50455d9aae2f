import { EventType, type BaseEvent, type Message } from "@ag-ui/client";
import fc from "fast-check";
import { expect, test } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import type { LocalAgent } from "../../../src/client/local-agent.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { nextTask } from "../../../src/platform/clock.js";
import { times } from "../property.js";
import { agentOf, counter, freshDb, user } from "../runner/kit.js";
import { IndexedDBAgentRunner } from "../../../src/runner/indexeddb-agent-runner.js";

const idsOf = (messages: readonly Message[]): string[] => messages.map(({ id }) => id);
/** How long a thread is looked at until what is shown has to be it, in ms. */
const PATIENCE_MS = 60_000;

const KINDS = ["counter", "tells", "trims"] as const;
const who = fc.nat({ max: 2 });
const tasks = fc.nat({ max: 25 });
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ does: fc.constant("run" as const), who, tasks, kind: fc.constantFrom(...KINDS) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constant("edit" as const),
      who,
      tasks,
      kind: fc.constantFrom(...KINDS),
      at: fc.nat({ max: 5 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ does: fc.constant("load" as const), who, tasks, limit: fc.nat({ max: 4 }) }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("connect" as const), who, tasks }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("follow" as const), who, tasks }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("unfollow" as const), who, tasks }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("detach" as const), who, tasks }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("clone" as const), who, tasks }) },
);

test("whatever tabs do with pages of one thread, each has the thread at the end, each message once (L2)", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 3, maxLength: 14 }),
      fc.nat({ max: 5 }),
      fc.array(fc.constantFrom(undefined, 1, 2, 4), { minLength: 3, maxLength: 3 }),
      fc.boolean(),
      async (steps, before, limits, slow) => {
        const runner = new IndexedDBAgentRunner({ dbName: freshDb(), stopGraceMs: 50 });
        const tells = agentOf(async function* ({ messages, runId }) {
          const own: Message = { id: `${runId}-a`, role: "assistant", content: "told" };
          yield { type: EventType.MESSAGES_SNAPSHOT, messages: [...messages, own] } as BaseEvent;
        });
        const trims = agentOf(async function* (input, context) {
          yield { type: EventType.MESSAGES_SNAPSHOT, messages: input.messages.slice(-3) } as BaseEvent;
          yield* counter(2)(input, context);
        });
        const host = serveRuntime({ agents: { counter: agentOf(counter(2)), tells, trims }, runner });
        const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
        const agents: LocalAgent[] = limits.map((messageLimit) =>
          runtime.agent("counter", { threadId: "t", ...(messageLimit !== undefined && { messageLimit }) }),
        );
        if (slow)
          for (const agent of agents)
            agent.subscribe({
              onRunStartedEvent: async () => nextTask(),
              onMessagesSnapshotEvent: async () => nextTask(),
            });
        const unfollow: (() => void)[][] = [[], [], []];
        let runs = 0;
        const edited = new Set<LocalAgent>();
        const copies: [LocalAgent, LocalAgent][] = [];
        try {
          const pending: Promise<unknown>[] = [];
          const first = agents[0]!;
          for (let n = 0; n < before; n++) {
            first.addMessage(user(`p${n}-u`));
            await first.runAgent({ runId: `p${n}` });
          }
          for (const s of steps) {
            const agent = agents[s.who]!;
            const go = (work: Promise<unknown>): void => void pending.push(work.catch(() => undefined));
            if (s.does === "run") {
              const runId = `r${runs++}`;
              agent.agentId = s.kind;
              agent.addMessage(user(`${runId}-u`));
              go(agent.runAgent({ runId }));
            }
            if (s.does === "edit") {
              const here = new Set(idsOf(await runner.getThreadMessages("t")));
              const runId = `r${runs++}`;
              agent.agentId = s.kind;
              const kept = agent.messages.slice(0, Math.max(0, agent.messages.length - s.at));
              // Who sends nothing that the thread has adds to it.
              if (!kept.some(({ id }) => here.has(id))) continue;
              agent.setMessages([...kept, user(`${runId}-u`)]);
              // Where it is refused, the tab goes on showing what its person made of it.
              go(
                agent.runAgent({ runId }).catch((error: unknown) => {
                  edited.add(agent);
                  throw error;
                }),
              );
            }
            if (s.does === "load") go(agent.loadEarlier(s.limit));
            if (s.does === "connect") go(agent.connectAgent());
            if (s.does === "follow") unfollow[s.who]!.push(agent.follow());
            if (s.does === "unfollow") unfollow[s.who]!.pop()?.();
            if (s.does === "detach") go(agent.detachActiveRun());
            if (s.does === "clone") {
              const copy = agent.clone();
              copies.push([agent, copy]);
              agents[s.who] = copy;
            }
            for (let n = 0; n < s.tasks; n++) await nextTask();
          }
          await Promise.all(pending);
          for (const [from, copy] of copies) if (edited.has(from)) edited.add(copy);
          for (const agent of agents) {
            if (edited.has(agent)) continue;
            const all = async () => await runner.getThreadMessages("t");
            // Unsent messages of refused runs are the tab's own.
            const shown = async () => {
              const has = new Set(idsOf(await all()));
              return idsOf(agent.messages).filter((id) => has.has(id));
            };
            const until = performance.now() + PATIENCE_MS;
            for (;;) {
              await agent.connectAgent().catch(() => undefined);
              for (let n = 0; agent.hasEarlier && n < 50; n++)
                if (
                  await agent.loadEarlier().then(
                    () => false,
                    () => true,
                  )
                )
                  break;
              const now = await shown();
              const wanted = idsOf(await all());
              if (JSON.stringify(now) === JSON.stringify(wanted) || performance.now() > until) {
                expect(now).toEqual(wanted);
                break;
              }
              await nextTask();
            }
          }
        } finally {
          await runtime.close();
          await host.close();
        }
      },
    ),
    { ...times(12), endOnFailure: true },
  );
});
