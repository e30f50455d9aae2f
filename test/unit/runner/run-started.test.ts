import { EventType, type BaseEvent, type Message, type RunAgentInput, type RunStartedEvent } from "@ag-ui/client";
import { PROTOCOL_VERSION } from "@ag-ui/core";
import { from } from "rxjs";
import { describe, expect, test } from "vitest";
import { nextTask } from "../../../src/platform/clock.js";
import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import {
  makeRunner as makeDurable,
  agentOf,
  collect,
  freshDb,
  gated,
  inputOf,
  mortalLocks,
  PRESETS,
  rawAgent,
  replay,
  silent,
  user,
} from "./kit.js";

const secrets = {
  context: [{ description: "who", value: "secret" }],
  forwardedProps: { token: "secret" },
  state: { secret: true },
};
const tools = [{ name: "look", description: "looks", parameters: {} }];

/** Says RUN_STARTED with what `more` makes of the input, and finishes. */
const starting = (more: (input: RunAgentInput) => Partial<RunStartedEvent>) =>
  rawAgent((input) => {
    const { threadId, runId } = input;
    const ids = { threadId, runId };
    return from<BaseEvent[]>([
      { type: EventType.RUN_STARTED, ...ids, ...more(input) },
      { type: EventType.RUN_FINISHED, ...ids },
    ]);
  });

const echoing = starting((input) => ({ input }));
const finishes = () => agentOf(async function* () {});

async function started(runner: LocalAgentRunner, agent = finishes(), more: Partial<RunAgentInput> = {}, runId = "r") {
  const [first] = await collect(runner.run({ threadId: "t", agent, input: { ...inputOf("t", runId), ...more } }));
  const [recorded] = await runner.getRunEvents(runId, { threadId: "t" });
  expect(recorded?.event).toEqual(first);
  return first as unknown as RunStartedEvent;
}

const idsOf = (messages: readonly Message[] | undefined): readonly string[] => (messages ?? []).map(({ id }) => id);

describe.each(PRESETS)("%s: the RUN_STARTED of a run", (_name, makeRunner) => {
  test("declares the version of the protocol, whatever its agent declares", async () => {
    const runner = makeRunner({ dbName: freshDb() });
    const declaring = (protocolVersion: string) => starting(() => ({ protocolVersion }));
    const agents = [finishes(), echoing, declaring("9.9"), declaring("draft"), rawAgent(() => from<BaseEvent[]>([]))];
    for (const [n, agent] of agents.entries()) {
      expect((await started(runner, agent, {}, `r${n}`)).protocolVersion).toBe(PROTOCOL_VERSION);
    }
    for (const event of await replay(runner, "t")) {
      if (event.type === EventType.RUN_STARTED) expect(event["protocolVersion"]).toBe(PROTOCOL_VERSION);
    }
    const snapshot = await collect(runner.connect({ threadId: "t", replay: "snapshot" }));
    expect(snapshot[0]).toMatchObject({ type: EventType.RUN_STARTED, protocolVersion: PROTOCOL_VERSION });
  });

  test.each<[string, boolean]>([
    ["at once", false],
    ["later", true],
  ])("may be yielded by a defineAgent function, %s", async (_when, isLate) => {
    const runner = makeRunner({ dbName: freshDb() });
    const agent = agentOf(async function* ({ threadId, runId }) {
      if (isLate) await nextTask();
      yield { type: EventType.RUN_STARTED, threadId, runId, protocolVersion: "1.0" };
      yield { type: EventType.CUSTOM, name: "n", value: 1 };
    });
    const events = await collect(runner.run({ threadId: "t", agent, input: inputOf("t", "r") }));
    expect(events.map(({ type }) => type)).toEqual([EventType.RUN_STARTED, EventType.CUSTOM, EventType.RUN_FINISHED]);
  });

  test("holds ids, the new messages and resume of its input; what may be secret only where an option asks for it", async () => {
    const asked = { ...secrets, tools, parentRunId: "above" };
    const plain = makeRunner({ dbName: freshDb() });
    for (const [n, agent] of [finishes(), echoing].entries()) {
      const event = await started(plain, agent, asked, `r${n}`);
      expect(JSON.stringify(event)).not.toContain("secret");
      expect(event).toMatchObject({ input: { parentRunId: "above", threadId: "t" } });
      expect(idsOf(event.input?.messages)).toEqual([`r${n}-u`]);
    }
    const keeping = makeRunner({ dbName: freshDb(), recordInput: ["context", "forwardedProps", "state", "tools"] });
    for (const [n, agent] of [finishes(), echoing].entries()) {
      const { input } = await started(keeping, agent, asked, `k${n}`);
      expect(input).toMatchObject({ ...secrets, tools });
    }
    expect(() => makeRunner({ recordInput: ["headers" as never] })).toThrow("recordInput");
  });

  test("keeps messages that only the agent names, in its order, and no other again", async () => {
    const runner = makeRunner({ dbName: freshDb() });
    const system: Message = { id: "system", role: "system", content: "be kind" };
    const naming = (...own: readonly Message[]) =>
      starting((input) => ({ input: { ...input, messages: [...own, ...input.messages] } }));
    expect(idsOf((await started(runner, naming(system, system))).input?.messages)).toEqual(["system", "r-u"]);
    const later = await started(runner, naming(system), { messages: [user("r2-u")] }, "r2");
    expect(idsOf(later.input?.messages)).toEqual(["r2-u"]);
    const order = ["system", "r-u", "r2-u"];
    expect(idsOf(await runner.getThreadMessages("t"))).toEqual(order);

    // Where the run starts a branch, too.
    const other: Message = { ...system, id: "other" };
    const messages = [system, user("r-u", "edited")];
    await started(runner, naming(other), { messages }, "r3");
    expect(idsOf(await runner.getThreadMessages("t"))).toEqual(["other", "system", "r-u"]);
  });

  test("keeps no message that the caller left out of the log", async () => {
    const runner = makeRunner({ dbName: freshDb() });
    const input = inputOf("t", "r", [user("kept"), user("left out")]);
    const persistedInputMessages = [user("kept")];
    await collect(runner.run({ threadId: "t", agent: echoing, input, persistedInputMessages }));
    expect(idsOf(await runner.getThreadMessages("t"))).toEqual(["kept"]);
  });
});

test("the RUN_STARTED that is made for a run whose host died declares the version, too", async () => {
  const manager = inProcessLockManager();
  const { locks, die } = mortalLocks(manager);
  const { gate, letOn } = gated();
  let fenced: () => void = () => undefined;
  const isFenced = new Promise<void>((resolve) => (fenced = resolve));
  const dead = makeDurable({
    locks,
    // Nothing of the run is written but its fence.
    atFailurePoint: async (point) => {
      if (point !== "claiming.fenced") return;
      fenced();
      await gate;
    },
  });
  const run = dead.start({ threadId: "t", agentId: "a", agent: agentOf(silent), input: inputOf("t", "r") });
  await isFenced;
  await die();
  const heir = makeDurable({ dbName: dead.dbName, locks: mortalLocks(manager).locks });
  await collect(heir.run({ threadId: "t", agent: finishes(), input: inputOf("t", "next") }));
  const [first] = await heir.getRunEvents("r", { threadId: "t" });
  expect(first?.event).toMatchObject({ type: EventType.RUN_STARTED, protocolVersion: PROTOCOL_VERSION });
  letOn();
  await run.ended;
});
