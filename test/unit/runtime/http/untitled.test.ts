import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { EventType, type BaseEvent } from "@ag-ui/client";
import { expect, test } from "vitest";
import { agentOf, counter, inputOf } from "../../runner/kit.js";
import { runtimeWith } from "../kit.js";

/** A thread that `agentId` ran once, without any message of a person, as its routes tell of it. */
async function toldOf(agentId: string): Promise<{ readonly name: unknown; readonly state: unknown }> {
  const stating = agentOf(async function* () {
    yield { type: EventType.STATE_SNAPSHOT, snapshot: { n: 1 } } as BaseEvent;
  });
  const handler = createRuntimeHandler({ runtime: runtimeWith({ agents: { plain: agentOf(counter(1)), stating } }) });
  const ask = async (path: string, init?: RequestInit): Promise<string> =>
    (await handler(new Request(`http://site.test${path}`, init))).text();
  const body = JSON.stringify(inputOf("t", "r", []));
  await ask(`/agent/${agentId}/run`, { method: "POST", headers: { "content-type": "application/json" }, body });
  const { threads } = JSON.parse(await ask("/threads")) as { threads: { name: unknown }[] };
  const { state } = JSON.parse(await ask("/threads/t/state")) as { state: unknown };
  return { name: threads[0]!.name, state };
}

test("a thread without a title has no name, and one without state no state", async () => {
  expect(await toldOf("plain")).toEqual({ name: null, state: null });
});

test("a state that there is, is told", async () => {
  expect(await toldOf("stating")).toMatchObject({ state: { n: 1 } });
});
