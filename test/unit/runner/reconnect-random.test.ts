import { EventType } from "@ag-ui/client";
import fc from "fast-check";
import { lastValueFrom, toArray } from "rxjs";
import { expect, test } from "vitest";
import type { Cursor } from "../../../src/run/types.js";
import { times } from "../property.js";
import { agentOf, collect, inputOf, makeMemoryRunner, rebuild, replay, user } from "./kit.js";

/** What happens to a thread; numbers choose among its runs. */
type Step =
  | { readonly is: "run" | "branch"; readonly thinks: boolean; readonly at: number }
  | { readonly is: "activate" | "delete" | "read"; readonly at: number };

const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ is: fc.constantFrom("run", "branch"), thinks: fc.boolean(), at: fc.nat(20) }) },
  { weight: 5, arbitrary: fc.record({ is: fc.constantFrom("activate", "read", "read"), at: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ is: fc.constant("delete" as const), at: fc.nat(20) }) },
);

const thinking = (thinks: boolean) =>
  agentOf(async function* ({ runId }) {
    if (thinks) {
      yield { type: EventType.REASONING_MESSAGE_START, messageId: `${runId}-r`, role: "reasoning" };
      yield { type: EventType.REASONING_MESSAGE_CONTENT, messageId: `${runId}-r`, delta: "hm" };
      yield { type: EventType.REASONING_MESSAGE_END, messageId: `${runId}-r` };
    }
    yield { type: EventType.TEXT_MESSAGE_START, messageId: `${runId}-a`, role: "assistant" };
    yield { type: EventType.TEXT_MESSAGE_END, messageId: `${runId}-a` };
  });

test("a plain reader that comes back by its cursor shows what a new one does, and nothing that stays goes meanwhile (L2)", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 4, maxLength: 14 }), async (all) => {
      const runner = makeMemoryRunner({ store: "isolated" });
      let held: Awaited<ReturnType<typeof rebuild>>["messages"] = [];
      let after: Cursor | undefined;
      let count = 0;
      for (const step of [...all, { is: "read", at: 0 } as const]) {
        const runs = await runner.listRuns("t");
        const runId = `r${count++}`;
        if (step.is === "run" || step.is === "branch") {
          const users = (await runner.getThreadMessages("t")).filter(({ role }) => role === "user");
          const before = step.is === "branch" ? users[step.at % Math.max(1, users.length)]?.id : undefined;
          await collect(
            runner.run({
              threadId: "t",
              agent: thinking(step.thinks),
              input: inputOf("t", runId, [user(`${runId}-u`)]),
              ...(before !== undefined && { branchBefore: before }),
            }),
          );
        } else if (step.is === "activate" && runs.length > 0) {
          await runner.activateRun("t", runs[step.at % runs.length]!.runId);
        } else if (step.is === "delete") {
          await runner.deleteThread("t");
        } else if (step.is === "read") {
          const parts = await lastValueFrom(
            runner.connectWithCursor({ threadId: "t", ...(after && { after }) }).pipe(toArray()),
          );
          const events = parts.flatMap((part) => [...part.events]);
          const truth = (await rebuild(await replay(runner, "t"))).messages;
          const ids = new Set(truth.map(({ id }) => id));
          const stays = held.filter(({ id }) => ids.has(id)).map(({ id }) => id);
          const gone: string[] = [];
          const { messages } = await rebuild(events, held, (shown) => {
            const now = new Set(shown.map(({ id }) => id));
            gone.push(...stays.filter((id) => !now.has(id)));
          });
          expect(messages).toEqual(truth);
          expect(gone).toEqual([]);
          held = messages;
          after = parts.at(-1)?.cursor ?? after;
        }
      }
      await runner.destroy();
    }),
    times(30),
  );
});
