import { expect, test } from "vitest";
import { encodeMessage } from "../../../src/sync/messages.js";
import { keyOfThread } from "../../../src/sync/thread-key.js";
import { agentOf, counter, inputOf, user } from "../runner/kit.js";
import { until } from "../waiting/kit.js";
import { MemoryServer, MemorySpace } from "./memory-space.js";
import { ask, device, sees, server } from "./servers-kit.js";

/*
 * Requests that nobody waits for any more, and that stand in the space all the same: their device has died, or was cut off.
 */

const HOUR_MS = 3_600_000;

test("a server that starts executes a request given up long ago only if its device is there", async () => {
  const space = new MemoryServer();
  const asker = { id: "dead", name: "Dead phone" };
  const request = { threadId: "t", agentId: "heavy", input: inputOf("t", "old", [user("u1")]) };
  const asks = { at: Date.now() - HOUR_MS, request, fingerprint: "f" };
  const claim = encodeMessage({ type: "claim", threadId: "t", runId: "old", device: asker, asks });
  space.add(await keyOfThread("t"), claim, 0, "claim");
  const executed: string[] = [];
  const heavy = agentOf(async function* (input, context) {
    executed.push(input.runId);
    yield* counter(1)(input, context);
  });
  await server(new MemorySpace(space), "Server", { agents: { heavy } });
  const phone = device(new MemorySpace(space), "Phone");
  await sees(phone.runtime, "heavy");
  await ask(phone.runtime, "heavy", "u", "new");
  expect(executed).toEqual(["new"]);
  space.told.next(new TextEncoder().encode(JSON.stringify({ type: "here", device: asker })));
  await until(() => expect(executed).toEqual(["new", "old"]));
});
