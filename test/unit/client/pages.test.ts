import { lastValueFrom, toArray } from "rxjs";
import { expect, onTestFinished, test } from "vitest";
import { runFrames } from "../../../src/client/frames.js";
import { HostLink } from "../../../src/client/host-link.js";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import type { RunRequest } from "../../../src/wire/shapes.js";
import { inputOf, user } from "../runner/kit.js";
import { hostWith } from "./kit.js";

test("a tab reads a thread's messages in pages, without attaching (L16)", async () => {
  const { runner, hosts } = await hostWith(3);
  const runtime = connectRuntime({ hosts });
  onTestFinished(() => runtime.close());
  const last = await runtime.threads.messages("t", { limit: 4 });
  expect(last.messages.map(({ id }) => id)).toEqual(["r1-u", "r1-a", "r2-u", "r2-a"]);
  expect(last.earlier).toBe(true);
  const first = await runtime.threads.messages("t", { before: "r1-u" });
  expect({ messages: [...first.messages, ...last.messages], earlier: first.earlier }).toEqual({
    messages: await runner.getThreadMessages("t"),
    earlier: false,
  });
  expect(await runtime.threads.messages("unknown")).toEqual({ messages: [], earlier: false });
  const refused = { code: "invalid-input", details: { field: "before" } };
  await expect(runtime.threads.messages("t", { before: "gone" })).rejects.toMatchObject(refused);
});

test("a run of a tab that has loaded the last messages only branches where it was edited", async () => {
  const { runner, hosts } = await hostWith(3);
  const all = await runner.getThreadMessages("t");
  const link = new HostLink({ hosts, startTimeoutMs: 60_000, callTimeoutMs: 60_000, extendedLifetime: true });
  onTestFinished(() => link.close());
  const request: RunRequest = {
    threadId: "t",
    agentId: "counter",
    input: inputOf("t", "own", [all[3]!, user("r2-u", "other words")]),
    cut: ["r2-a"],
  };
  await lastValueFrom(runFrames(link, request, () => undefined).pipe(toArray()));
  expect((await runner.getThreadMessages("t")).slice(0, -1)).toEqual([...all.slice(0, 4), user("r2-u", "other words")]);
});
