import { firstValueFrom, filter } from "rxjs";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { agentOf, counter, fastClock, gated, inputOf } from "../runner/kit.js";
import { gatedAgent, until } from "../waiting/kit.js";
import { deviceOn, types } from "./kit.js";
import { MemoryServer, MemorySpace } from "./memory-space.js";
import { ask, device, runOf, sees, server, STOPPED_EARLY } from "./servers-kit.js";

/*
 * Runs with the placement `any` that a server is asked for which has just died: it counts as online for 15 s.
 */

const both = agentOf(counter(2));

describe("a run that no server takes is executed here", () => {
  test.for(["reject", "supersede", "queue"] as const)("with onBusy: %s", async (onBusy) => {
    const space = new MemoryServer();
    const at = new MemorySpace(space);
    await server(at, "Server", { agents: { both } });
    const { agent } = gatedAgent();
    const { runtime } = device(new MemorySpace(space), "Phone", {
      agents: { both, own: agent },
      agentPolicies: { both: { placement: "any" } },
      stopGraceMs: 50,
    });
    await sees(runtime, "both");
    const live = onBusy === "supersede" ? ask(runtime, "own", "t", "r1").catch(() => undefined) : undefined;
    if (live !== undefined)
      await until(async () => expect(await runOf(runtime, "t", "r1")).toMatchObject({ status: "running" }));
    at.connect(false);
    await ask(runtime, "both", "t", "r2", { onBusy });
    await live;
    await until(async () => expect(await runOf(runtime, "t", "r2")).toMatchObject({ status: "finished" }));
    expect(await runOf(runtime, "t", "r2")).not.toHaveProperty("device");
    // It was claimed here, so the other devices know of it.
    await until(() =>
      expect(
        types(space)
          .filter((type) => type !== "events")
          .slice(-4),
      ).toEqual(["release", "claim", "run", "end"]),
    );
  });
});

test("a run that waits to be taken is stopped, and not executed here", async () => {
  const space = new MemoryServer();
  const at = new MemorySpace(space);
  await server(at, "Server", { agents: { both } });
  const executed = vi.fn(both.run.bind(both));
  const own = Object.assign(both.clone(), { run: executed });
  const { runtime } = device(new MemorySpace(space), "Phone", {
    agents: { both: own },
    agentPolicies: { both: { placement: "any" } },
  });
  await sees(runtime, "both");
  at.connect(false);
  const stopped = expect(ask(runtime, "both", "t", "r1")).resolves.toEqual(STOPPED_EARLY);
  await until(() => expect(types(space)).toContain("claim"));
  expect(await runtime.runner().stop({ threadId: "t" })).toBe(true);
  await stopped;
  expect(types(space)).toEqual(["claim", "release"]);
  expect(executed).not.toHaveBeenCalled();
});

test("a run that a server had claimed, and may execute, is not executed here as well", async () => {
  const space = new MemoryServer();
  const clock = fastClock(4);
  const at = new MemorySpace(space);
  const { gate } = gated();
  // It is cut off behind its claim.
  const add = space.add.bind(space);
  vi.spyOn(space, "add").mockImplementation((...entry) => {
    const seq = add(...entry);
    if (types(space).filter((type) => type === "claim").length === 2) queueMicrotask(() => at.connect(false));
    return seq;
  });
  await server(at, "Server", { agents: { both: agentOf(counter(2, () => gate)) }, stopGraceMs: 50 }, clock);
  const phone = deviceOn(new MemorySpace(space), "Phone", { clock });
  onTestFinished(phone.close);
  await firstValueFrom(
    phone.sync.status$.pipe(filter(({ devices }) => devices.some(({ agents }) => agents?.includes("both") === true))),
  );
  const executed = vi.fn();
  const agent = agentOf(async function* () {
    executed();
    yield* [];
  });
  const run = { threadId: "t", agentId: "both", agent, input: inputOf("t", "r1"), placement: "any" } as const;
  const refusal = async (): Promise<string> => {
    const error = await phone.runner.start(run).started.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "offline" });
    return String(error);
  };
  expect(await refusal()).toContain("has taken the run, and does not begin it");
  // It counts as away by now or soon: the run is asked for again, and taken back.
  await until(async () => expect(await refusal()).toContain("No server of the space has taken"));
  expect(types(space)).toEqual(["claim", "claim", "claim", "release"]);
  expect(executed).not.toHaveBeenCalled();
});
