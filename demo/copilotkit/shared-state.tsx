import { useAgent } from "@copilotkit/react-core/v2";

/** The agent counts with `count`; the page sets what the next run begins with. */
export function SharedState() {
  const { agent } = useAgent();
  const { count = 0 } = (agent.state ?? {}) as { count?: number };
  return (
    <section aria-label="Shared state">
      Count: <output aria-label="Count">{count}</output>
      <button onClick={() => agent.setState({ ...(agent.state as object), count: count + 10 })}>Add ten</button>
    </section>
  );
}
