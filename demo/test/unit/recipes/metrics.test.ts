import { describe, expect, test, vi } from "vitest";
import { counters } from "../../../recipes/metrics.js";
import { inputOf } from "../../../../test/unit/runner/kit.js";
import { runtimeWith } from "../../../../test/unit/runtime/kit.js";
import { WAYS } from "../../../../test/unit/runtime/ways.js";

describe.each(WAYS)("counters, $name", (way) => {
  test("count runs, events, failures and live threads", async () => {
    const { metrics, text } = counters();
    const caller = await way.open(runtimeWith({ metrics }));
    await caller.run("counter", inputOf("t1", "r1"));
    await caller.run("counter", inputOf("t1", "r2"));
    await caller.runAndLeave("silent", inputOf("t2", "r"));
    await expect(caller.run("nobody", inputOf("t3", "r"))).rejects.toMatchObject({ status: 404 });
    await vi.waitFor(() => {
      const lines = text().split("\n");
      expect(lines).toContain('agent_runs_total{agent="counter",status="finished"} 2');
      expect(lines).toContain('agent_events_total{agent="counter"} 14');
      expect(lines).toContain("agent_request_failures_total 1");
      expect(lines).toContain("agent_live_threads 1");
      expect(lines).toContain('agent_run_seconds_bucket{agent="counter",le="+Inf"} 2');
      expect(lines).toContain('agent_run_seconds_count{agent="counter"} 2');
    });
  });
});

const ended = (durationMs: number, agentId = "a") =>
  ({ threadId: "t", runId: "r", agentId, status: "finished", durationMs, events: 1 }) as const;

test("a run counts in each bucket that it fits in", () => {
  const { metrics, text } = counters();
  metrics.runEnded!(ended(400));
  metrics.runEnded!(ended(500));
  metrics.runEnded!(ended(400_000));
  const buckets = [...text().matchAll(/le="([^"]+)"} (\d+)/g)].map(([, end, count]) => `${end}: ${count}`);
  expect(buckets).toEqual(["0.1: 0", "0.5: 2", "1: 2", "5: 2", "10: 2", "30: 2", "60: 2", "300: 2", "+Inf: 3"]);
  expect(text()).toContain('agent_run_seconds_sum{agent="a"} 400.9');
});

test("what belongs to one metric stands together, below its type", () => {
  const { metrics, text } = counters();
  metrics.runEnded!(ended(1, "a"));
  metrics.runEnded!(ended(1, "b"));
  const families = text()
    .trimEnd()
    .split("\n")
    .map((line) => /^(?:# TYPE )?(agent_run_seconds|\w+)/.exec(line)![1]);
  const blocks = families.filter((family, at) => family !== families[at - 1]);
  expect(new Set(blocks).size).toBe(blocks.length);
  expect(text()).toMatch(/^# TYPE agent_live_threads gauge\nagent_live_threads 0\n/);
});

test("an agent's id breaks no line", () => {
  const { metrics, text } = counters();
  metrics.runEnded!(ended(1, 'a"b\\c\nd'));
  expect(text()).toContain('agent_runs_total{agent="a\\"b\\\\c\\nd",status="finished"} 1');
});
