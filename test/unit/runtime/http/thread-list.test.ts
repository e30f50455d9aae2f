import { describe, expect, onTestFinished, test } from "vitest";
import { InMemoryAgentRunner } from "ag-ui-local-runtime";
import { AgentRuntime, createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import type { Clock } from "../../../../src/platform/clock.js";
import { systemClock } from "../../../../src/platform/clock.js";
import { agentOf, collect, counter, inputOf } from "../../runner/kit.js";

interface Page {
  readonly threads: readonly { readonly id: string }[];
  readonly nextCursor: string | null;
}

/** The list of threads, of each time as many as are said. */
async function listOf(times: readonly number[]) {
  let now = 0;
  const clock: Clock = { now: () => now, elapsed: systemClock.elapsed, after: systemClock.after };
  const runner = new InMemoryAgentRunner({ store: "isolated", clock });
  onTestFinished(() => runner.destroy());
  const agent = agentOf(counter(1));
  for (const [at, time] of times.entries()) {
    now = time;
    await collect(runner.run({ threadId: `t${at}`, agent, input: inputOf(`t${at}`, "r") }));
  }
  const handler = createRuntimeHandler({ runtime: new AgentRuntime({ agents: {}, runner }) });
  const page = async (query: string): Promise<Page> =>
    (await (await handler(new Request(`http://localhost/threads?${query}`))).json()) as Page;
  const pages = async (limit: number, query = ""): Promise<readonly string[]> => {
    const ids: string[] = [];
    let cursor = "";
    do {
      const { threads, nextCursor }: Page = await page(`limit=${limit}&cursor=${encodeURIComponent(cursor)}${query}`);
      expect(threads.length).toBeLessThanOrEqual(limit);
      ids.push(...threads.map(({ id }) => id));
      cursor = nextCursor ?? "";
    } while (cursor !== "" && ids.length <= times.length);
    return ids;
  };
  return { runner, page, pages };
}

describe("the list of threads", () => {
  test.each([1, 2, 3, 4, 5, 6, 7, 8])("has threads of one time once each in pages of %i", async (limit) => {
    const { pages } = await listOf([1, 2, 2, 2, 2, 3, 3]);
    expect(await pages(limit)).toEqual(["t6", "t5", "t4", "t3", "t2", "t1", "t0"]);
  });

  test.each([1, 2, 3, 7])("has archived threads among others of their time in pages of %i", async (limit) => {
    const { runner, pages } = await listOf([1, 2, 2, 2, 2, 3, 3]);
    for (const threadId of ["t2", "t4", "t5"]) await runner.updateThread(threadId, { archived: true });
    expect(await pages(limit, "&includeArchived=true")).toEqual(["t6", "t5", "t4", "t3", "t2", "t1", "t0"]);
    expect(await pages(limit)).toEqual(["t6", "t3", "t1", "t0"]);
  });

  test("goes on behind what a page showed, where a thread has moved to the front meanwhile", async () => {
    const { runner, page } = await listOf([1, 2, 3, 4]);
    const { threads, nextCursor } = await page("limit=2");
    expect(threads.map(({ id }) => id)).toEqual(["t3", "t2"]);
    await collect(runner.run({ threadId: "t3", agent: agentOf(counter(1)), input: inputOf("t3", "next") }));
    const rest = await page(`limit=2&cursor=${encodeURIComponent(nextCursor ?? "")}`);
    expect(rest.threads.map(({ id }) => id)).toEqual(["t1", "t0"]);
  });
});
