import type { SharedToolCalls } from "ag-ui-local-runtime/copilotkit";

/** Tools that were cut off by the end of their tab, and must not run twice: somebody has to say what is to become of them. */
export function Interrupted({ tools: { calls, answer, runAgain } }: { tools: SharedToolCalls }) {
  return calls
    .filter(({ status }) => status === "interrupted")
    .map(({ toolCallId, name }) => (
      <div key={toolCallId} className="card" role="group" aria-label="Interrupted">
        <p>The tab was closed in the middle of “{name}”. It may have been done, or not.</p>
        <button onClick={() => void runAgain(toolCallId)}>Run it again</button>
        <button onClick={() => void answer(toolCallId, "done before")}>It was done</button>
      </div>
    ));
}
