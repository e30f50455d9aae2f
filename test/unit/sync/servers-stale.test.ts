import { filter, firstValueFrom } from "rxjs";
import { expect, onTestFinished, test } from "vitest";
import { encodeMessage } from "../../../src/sync/messages.js";
import { keyOfThread } from "../../../src/sync/thread-key.js";
import { agentOf, counter, fastClock, freshDb, gated, inputOf, user } from "../runner/kit.js";
import { until } from "../waiting/kit.js";
import { deviceOn, ended, say, types } from "./kit.js";
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

test.for(["no run", "a run"])(
  "a request of a host that was closed is taken back a minute later, by the next host (the thread has %s)",
  async (has) => {
    const space = new MemoryServer();
    const { gate } = gated();
    const agents = { heavy: agentOf(counter(1)) };
    await server(new MemorySpace(space), "Server", { agents, beforeRequestMiddleware: () => gate });
    const of = { dbName: freshDb(), clock: fastClock(20) };
    const first = deviceOn(new MemorySpace(space), "Phone", of);
    onTestFinished(first.close);
    if (has === "a run") {
      await say(first, "t", "r1", agentOf(counter(1)));
      await until(() => expect(ended(space)).toBe(1));
    }
    await firstValueFrom(
      first.sync.status$.pipe(filter(({ devices }) => devices.some(({ name }) => name === "Server"))),
    );
    const before = types(space).length;
    const agent = agentOf(counter(1));
    const asked = { threadId: "t", agentId: "heavy", agent, input: inputOf("t", "r2"), placement: "server" } as const;
    first.runner.start(asked).started.catch(() => undefined);
    await until(() => expect(types(space).slice(before)).toEqual(["claim"]));
    await first.close();
    const second = deviceOn(new MemorySpace(space), "Phone", of);
    onTestFinished(second.close);
    await until(() => expect(types(space).slice(before)).toEqual(["claim", "release"]));
  },
);
