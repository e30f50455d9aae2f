import { useInterrupt } from "@copilotkit/react-core/v2";

/** Questions of the agent that its next run answers: AG-UI's interrupts, and the older custom event `on_interrupt`. */
export function Interrupts() {
  useInterrupt({
    render: ({ interrupt, event, resolve, cancel }) =>
      interrupt ? (
        <div className="card" role="group" aria-label="Approval">
          <p>{interrupt.message}</p>
          <button onClick={() => void resolve({ approved: true })}>Approve</button>
          <button onClick={() => void cancel()}>Cancel</button>
        </div>
      ) : (
        <div className="card" role="group" aria-label="Decision">
          <p>{(event.value as { question: string }).question}</p>
          <button onClick={() => void resolve("yes")}>Yes</button>
          <button onClick={() => void resolve("no")}>No</button>
        </div>
      ),
  });
  return null;
}
