import { EventType, type BaseEvent } from "@ag-ui/client";
import { filter, firstValueFrom, of, timeout } from "rxjs";
import { expect, test, vi } from "vitest";
import { agentOf, gated, whenAborted } from "../runner/kit.js";
import { until } from "../waiting/kit.js";
import { lineOf, MemoryServer, types } from "./kit.js";
import { MemorySpace } from "./memory-space.js";
import { ask, device, runOf, sees, server } from "./servers-kit.js";

/*
 * Servers count as away after 15 s: these tests wait that long.
 */

const story = (space: MemoryServer): string => space.entries.flatMap(lineOf).join("\n");

test.for(["has ended", "goes on"] as const)(
  "what a server has claimed that is away, another one executes, and the first goes on with that when it %s",
  async (returns) => {
    const { gate, letOn } = gated();
    const space = new MemoryServer();
    const first = new MemorySpace(space);
    const seen: string[] = [];
    const agents = (name: string) => ({
      heavy: agentOf(async function* ({ runId, messages }, { signal }): AsyncGenerator<BaseEvent> {
        seen.push(`${name} ${runId}: ${messages.map(({ content }) => content).join(" | ")}`);
        if (name === "S1" && runId === "r1") {
          await whenAborted(signal);
          seen.push("S1 ends r1");
        }
        const messageId = `${runId}-${name}`;
        yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
        yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: `${runId} by ` } as BaseEvent;
        if (runId === "r1" && returns === "goes on") await gate;
        yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: name } as BaseEvent;
        yield { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent;
      }),
    });
    await server(first, "S1", { agents: agents("S1"), stopGraceMs: 50 });
    const { runtime } = device(new MemorySpace(space), "Phone", { agentPolicies: { heavy: { placement: "server" } } });
    await sees(runtime, "heavy");
    // Its claim is there, and it is cut off before its run is.
    const add = space.add.bind(space);
    const adding = vi.spyOn(space, "add").mockImplementation((...entry) => {
      const seq = add(...entry);
      if (types(space).filter((type) => type === "claim").length === 2) queueMicrotask(() => first.connect(false));
      return seq;
    });
    const asked = ask(runtime, "heavy", "t", "r1", { whenOffline: "wait" });
    await until(() => expect(first.isOnline).toBe(false));
    adding.mockRestore();
    const second = await server(new MemorySpace(space), "S2", { agents: agents("S2") });
    const isOver = (): void => expect(seen).toContain("S1 ends r1");
    if (returns === "goes on") {
      await until(() => expect(types(space)).toContain("run"));
      first.connect(true);
      await until(isOver);
      letOn();
    }
    await asked;
    first.connect(true);
    await until(isOver);
    await second.close();
    await vi.waitFor(() => ask(runtime, "heavy", "t", "r2"), { timeout: 30_000, interval: 200 });
    expect(seen.at(-1), [...seen, story(space)].join("\n")).toBe("S1 r2: asked in r1 | r1 by S2 | asked in r2");
  },
);

test("a run that was stopped while its server was away behind its claim does not go on when that is back", async () => {
  const space = new MemoryServer();
  const at = new MemorySpace(space);
  const { gate, letOn } = gated();
  const agent = agentOf(async function* (_input, { signal }): AsyncGenerator<BaseEvent> {
    await Promise.race([gate, whenAborted(signal)]);
    if (signal.aborted) return;
    const messageId = "said";
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "went on" } as BaseEvent;
    yield { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent;
  });
  await server(at, "Server", { agents: { heavy: agent }, stopGraceMs: 50 });
  const { runtime } = device(new MemorySpace(space), "Phone");
  await sees(runtime, "heavy");
  const add = space.add.bind(space);
  const adding = vi.spyOn(space, "add").mockImplementation((...entry) => {
    const seq = add(...entry);
    if (types(space).filter((type) => type === "claim").length === 2) queueMicrotask(() => at.connect(false));
    return seq;
  });
  const refused = ask(runtime, "heavy", "t", "r1", { whenOffline: "wait" }).then(
    () => "done",
    (error: { code?: string }) => error.code,
  );
  await until(() => expect(at.isOnline).toBe(false));
  adding.mockRestore();
  // It counts as away: the run is asked for again.
  await vi.waitFor(() => expect(types(space).filter((type) => type === "claim").length).toBe(3), {
    timeout: 80_000,
    interval: 20,
  });
  expect(await runtime.runner().stop({ threadId: "t", runId: "r1" })).toBe(true);
  expect(await refused).toBe("cancelled");
  await until(() => expect(types(space)).toContain("release"));
  const told = firstValueFrom(
    space.told.pipe(
      filter((body) => new TextDecoder().decode(body).includes('"stop"')),
      timeout({ first: 15_000, with: () => of(undefined) }),
    ),
  );
  at.connect(true);
  await told;
  letOn();
  await until(() => expect(types(space), story(space)).toContain("end"));
  await until(async () => expect(await runOf(runtime, "t", "r1"), story(space)).toMatchObject({ status: "stopped" }));
});
