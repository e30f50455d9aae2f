import { expect, test, vi } from "vitest";
import type { LocalAgent } from "../../../src/client/local-agent.js";
import { answerOf, makeHost } from "./kit.js";
import { user } from "../runner/kit.js";

const loading = vi.hoisted(() => {
  let resolve!: () => void;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
});

vi.mock("../../../src/client/apply/apply-stage.js", async (original) => {
  await loading.promise;
  return original();
});

/** What the agent shows in the task after `run$` said that a run has ended. */
function shownAtEnds(agent: LocalAgent): unknown[] {
  const shown: unknown[] = [];
  agent.run$.subscribe((run) => {
    if (run.is === "idle" && run.last !== undefined) setTimeout(() => shown.push(answerOf(agent)));
  });
  return shown;
}

test("a tab that is still loading what applies events is not told of an end that its messages do not show (L2)", async () => {
  const { connect } = makeHost();
  const runtime = connect();
  const [runs, follows, reads] = ["r", "f", "c"].map(() => runtime.agent("counter", { threadId: "t" }));
  const shown = [runs!, follows!, reads!].map(shownAtEnds);
  follows!.follow();
  runs!.addMessage(user("m0"));
  const run = runs!.runAgent({ runId: "run" });
  await vi.waitFor(async () => expect((await runtime.threads.get("t"))?.lastStatus).toBe("finished"));
  const read = reads!.connectAgent();
  loading.resolve();
  await Promise.all([run, read]);
  await vi.waitFor(() => expect(shown.map(({ length }) => length)).toEqual([1, 1, 1]));
  for (const [answer] of shown) expect(answer).toMatch(/^0 1 .* 29 $/);
});
