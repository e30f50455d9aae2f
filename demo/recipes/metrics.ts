import type { RuntimeMetrics } from "ag-ui-local-runtime/runtime";

/** Upper ends of the histogram's buckets, in seconds. */
const SECONDS = [0.1, 0.5, 1, 5, 10, 30, 60, 300];

/**
 * Counts runs and failures and how long runs last, and says it in the text format of Prometheus
 * (https://prometheus.io/docs/instrumenting/exposition_formats/):
 *
 *     const { metrics, text } = counters();
 *     const runtime = new AgentRuntime({ agents, metrics });
 *     // GET /metrics: new Response(text(), { headers: { "content-type": "text/plain; version=0.0.4" } })
 *
 * Its limits: each host counts for itself, from its start on. Agents made for each request must not have ids without end:
 * each is a line.
 */
export function counters(): { readonly metrics: RuntimeMetrics; readonly text: () => string } {
  const counts = new Map<string, number>();
  const add = (name: string, by = 1): void => void counts.set(name, (counts.get(name) ?? 0) + by);
  let live = 0;
  const metrics: RuntimeMetrics = {
    liveThreads: (count) => void (live = count),
    error: () => add("agent_request_failures_total"),
    runEnded: ({ agentId, status = "unknown", durationMs, events }) => {
      const agent = `agent="${agentId.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`;
      add(`agent_runs_total{${agent},status="${status}"}`);
      add(`agent_events_total{${agent}}`, events);
      for (const end of [...SECONDS, Infinity]) {
        const name = `agent_run_seconds_bucket{${agent},le="${end === Infinity ? "+Inf" : end}"}`;
        add(name, durationMs <= end * 1_000 ? 1 : 0);
      }
      add(`agent_run_seconds_sum{${agent}}`, durationMs / 1_000);
      add(`agent_run_seconds_count{${agent}}`);
    },
  };
  const text = (): string =>
    Object.entries(TYPES)
      .flatMap(([name, type]) => {
        const lines = [...counts, ["agent_live_threads", live] as const].filter(([line]) => line.startsWith(name));
        return [`# TYPE ${name} ${type}`, ...lines.map(([line, value]) => `${line} ${value}`)];
      })
      .join("\n") + "\n";
  return { metrics, text };
}

const TYPES = {
  agent_live_threads: "gauge",
  agent_request_failures_total: "counter",
  agent_runs_total: "counter",
  agent_events_total: "counter",
  agent_run_seconds: "histogram",
};
