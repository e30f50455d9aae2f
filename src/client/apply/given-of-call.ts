import {
  defaultApplyEvents,
  type AbstractAgent,
  type AgentSubscriber,
  type BaseEvent,
  type Message,
  type RunAgentInput,
  type ToolCall,
} from "@ag-ui/client";
import { lastValueFrom, of } from "rxjs";

/**
 * What the client's default apply stage gives to the hook of TOOL_CALL_ARGS or TOOL_CALL_END. It is asked itself, with a
 * thread of this call alone: it keeps for itself how it completes arguments that are still coming.
 *
 * @returns also what every hook is given, of the thread of this call
 */
export async function givenOfCall(input: RunAgentInput, event: BaseEvent, call: ToolCall): Promise<object> {
  let asked: object = {};
  const take = (given: object): { stopPropagation: boolean } => {
    asked = given;
    return { stopPropagation: true };
  };
  const asking: AgentSubscriber = { onToolCallArgsEvent: take, onToolCallEndEvent: take };
  const messages: Message[] = [{ id: "call", role: "assistant", toolCalls: [call] }];
  const alone = { messages } as unknown as AbstractAgent; // it reads nothing else of it
  await lastValueFrom(defaultApplyEvents({ ...input, state: null }, of(event), alone, [asking]));
  return asked;
}
