import { EventType } from "@ag-ui/client";
import { lastValueFrom } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { HostLink } from "../../../src/client/host-link.js";
import { streams } from "../../../src/client/late-streams.js";
import { RunnerError } from "../../../src/run/errors.js";
import { collect, gated, inputOf, user } from "../runner/kit.js";
import { hostWith } from "./kit.js";

/*
 * What streams threads is loaded with the first agent: what is asked before it is there counts (L13).
 */

/** A page that is still loading what streams threads, until it is let on; and how often it has attached. */
async function loading() {
  const { runner, hosts } = await hostWith(2);
  const { gate, letOn } = gated();
  const get = streams.get.bind(streams);
  const made = vi.spyOn(streams, "made", "get").mockReturnValue(undefined);
  const asked = vi.spyOn(streams, "get").mockImplementation(async () => {
    await gate;
    made.mockRestore();
    return get();
  });
  const called = vi.spyOn(HostLink.prototype, "callOnce");
  onTestFinished(() => void vi.restoreAllMocks());
  const runtime = connectRuntime({ hosts });
  onTestFinished(() => runtime.close());
  const calls = () => called.mock.calls.map(([name]) => name);
  return { runner, runtime, asked, letOn, calls, agent: runtime.agent("counter", { threadId: "t" }) };
}

test("an agent that follows is read once, also where it connects before the code is loaded (L13)", async () => {
  const { agent, runner, letOn, calls } = await loading();
  onTestFinished(agent.follow());
  const reading = agent.connectAgent();
  letOn();
  await reading;
  expect(agent.messages).toEqual(await runner.getThreadMessages("t"));
  expect(calls()).toEqual(["attach"]);
});

test("an agent that follows no more when the code is loaded attaches to nothing (L14)", async () => {
  const { agent, letOn, calls } = await loading();
  agent.follow()();
  const reading = agent.connectAgent();
  letOn();
  await reading;
  expect(calls()).toEqual(["attach"]);
});

test("where the code cannot be loaded, a reading says so, and who follows tries again (L13)", async () => {
  const { agent, runner, letOn, asked } = await loading();
  asked.mockRejectedValueOnce(new RunnerError("outdated")).mockRejectedValueOnce(new RunnerError("outdated"));
  onTestFinished(agent.follow());
  await expect(agent.connectAgent()).rejects.toMatchObject({ code: "outdated" });
  letOn();
  const all = await runner.getThreadMessages("t");
  await vi.waitFor(() => expect(agent.messages).toEqual(all), 10_000);
});

test("a run that nobody listens to any more when the code is loaded is asked for all the same (L11)", async () => {
  const { agent, runtime, runner, letOn } = await loading();
  agent.run(inputOf("t", "left")).subscribe().unsubscribe();
  runtime.runner().run({ threadId: "other", agent, input: inputOf("other", "unheard") });
  letOn();
  await vi.waitFor(async () => expect((await runner.getRun("left"))?.status).toBe("finished"));
  await vi.waitFor(async () => expect((await runner.getRun("unheard"))?.status).toBe("finished"));
});

test("a run whose code cannot be loaded is refused before it is asked for, and its message goes with the next one (L13)", async () => {
  const { agent, runner, asked, letOn, calls } = await loading();
  asked.mockRejectedValueOnce(new RunnerError("outdated"));
  agent.addMessage(user("u"));
  await expect(agent.runAgent()).rejects.toMatchObject({ code: "outdated" });
  expect(calls()).toEqual([]);
  letOn();
  await agent.runAgent({ runId: "again" });
  expect((await runner.getThreadMessages("t")).map(({ id }) => id)).toContain("u");
  expect(agent.isOwnRun("again")).toBe(true);
});

test("what a host's runner is asked for comes once the code is loaded (L13)", async () => {
  const { runtime, asked, letOn } = await loading();
  const remote = runtime.runner();
  asked.mockRejectedValueOnce(new RunnerError("outdated"));
  await expect(lastValueFrom(remote.connect({ threadId: "t" }))).rejects.toMatchObject({ code: "outdated" });
  const events = [
    collect(remote.connect({ threadId: "t" })),
    collect(remote.run({ threadId: "n", agent: { agentId: "counter" }, input: inputOf("n", "r") })),
  ];
  letOn();
  for (const all of await Promise.all(events)) expect(all.at(-1)).toMatchObject({ type: EventType.RUN_FINISHED });
});
