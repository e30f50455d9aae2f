import type { Logger } from "ag-ui-local-runtime/runtime";
import { describe, expect, test } from "vitest";
import { inputOf } from "../runner/kit.js";
import { runtimeWith } from "./kit.js";
import { WAYS } from "./ways.js";

describe.each(WAYS)("the logger of a runtime, $name", (way) => {
  test("is told of a failed run once, and of nothing that its request holds", async () => {
    const lines: (readonly unknown[])[] = [];
    const note = (...line: readonly unknown[]): void => void lines.push(line);
    const logger: Logger = { error: note, warn: note };
    const secret = "s3cret-of-the-request";
    const caller = await way.open(runtimeWith({ logger }), { "x-token": secret });
    const input = { ...inputOf("t", "r"), forwardedProps: { secret }, context: [{ description: "d", value: secret }] };
    await caller.run("failing", input).catch(() => undefined);
    expect(lines).toEqual([['Run "r" of thread "t" (agent "failing") failed: the agent failed', expect.any(Error)]]);
    expect(String((lines[0]![1] as Error).stack)).toContain("kit.ts");
    expect(JSON.stringify(lines) + String((lines[0]![1] as Error).stack)).not.toContain(secret);
    await caller.run("counter", inputOf("t", "r2"));
    expect(lines.length).toBe(1);
  });
});

test("a logger without methods is refused when the runtime is made", () => {
  expect(() => runtimeWith({ logger: {} as Logger })).toThrow(expect.objectContaining({ code: "invalid-input" }));
});
