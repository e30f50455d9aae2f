import type { Observable } from "rxjs";
import type { ThreadToolCalls, ToolCallAnswer, ToolCallClaim } from "../../wire/shapes.js";
import type { HostLink } from "../host-link.js";
import { hostStream } from "../host-stream.js";

/** The tool calls of threads that wait for the front end. `runFrontendTools` and the stores run them. */
export interface ToolCallsApi {
  /** A thread's waiting calls, now and after each change in any tab. Errors: RunnerError `refused`, or of the storage. */
  watch(threadId: string): Observable<ThreadToolCalls>;
  /**
   * Claims a call for this tab, until it is answered or the tab is gone.
   *
   * @returns false where another tab has it, or it is interrupted and not claimed `again`. Errors: RunnerError `call-over`
   */
  claim(claim: ToolCallClaim): Promise<boolean>;
  /** Gives a call its result, once. Errors: RunnerError `call-over`, `invalid-input` */
  answer(answer: ToolCallAnswer): Promise<void>;
}

export const toolCallsApi = (link: HostLink): ToolCallsApi => ({
  watch: (threadId) => hostStream(link, (port) => link.callOnce("watchToolCalls", { threadId }, port)),
  claim: (claim) => link.call("claimToolCall", claim),
  answer: async (answer) => {
    await link.call("answerToolCall", answer);
  },
});
