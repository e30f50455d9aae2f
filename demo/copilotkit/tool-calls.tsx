import type { SharedToolCalls } from "ag-ui-local-runtime/copilotkit";

interface ToolCallsProps {
  readonly tools: SharedToolCalls;
  /** Shows why a call is refused: another tab may have been first. */
  readonly tell: (call: Promise<void>) => void;
}

/** What the user has to know of tools that run elsewhere, or were cut off by the end of their tab and must not run twice. */
export function ToolCalls({ tools: { calls, answer, runAgain }, tell }: ToolCallsProps) {
  return calls.map(({ toolCallId, name, status, isHere }) => {
    if (status === "running" && !isHere) {
      return (
        <p key={toolCallId} className="card" role="status">
          “{name}” waits in another tab.
        </p>
      );
    }
    if (status !== "interrupted") return null;
    return (
      <div key={toolCallId} className="card" role="group" aria-label="Interrupted">
        <p>The tab was closed in the middle of “{name}”. It may have been done, or not.</p>
        <button onClick={() => tell(runAgain(toolCallId))}>Run it again</button>
        <button onClick={() => tell(answer(toolCallId, "done before"))}>It was done</button>
      </div>
    );
  });
}
