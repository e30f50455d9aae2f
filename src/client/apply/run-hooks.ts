import type { AbstractAgent, AgentStateMutation, AgentSubscriber, Message, RunAgentInput, State } from "@ag-ui/client";
import type { Hooks } from "./hooks.js";
import type { Steps } from "./steps.js";

/** What every hook is given. */
export interface Given {
  readonly messages: Message[];
  readonly state: State;
  readonly agent: AbstractAgent;
  readonly input: RunAgentInput;
}

/** As in the client: in tests a hook's TypeError fails the run. */
function isTest(): boolean {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } }; // not in every browser
  return process?.env?.["NODE_ENV"] === "test" || Boolean(process?.env?.["VITEST_WORKER_ID"]);
}

/**
 * Calls a hook of each subscriber, one after the other, with the semantics of `@ag-ui/client`: returned messages and
 * state are given to the next one, `stopPropagation` ends the chain, and a hook that throws is skipped.
 *
 * Hooks get the messages and state themselves, not copies: nobody writes to these any more.
 */
export function* runHooks(
  subscribers: readonly AgentSubscriber[],
  name: string,
  given: Given,
): Steps<AgentStateMutation> {
  let { messages, state } = given;
  const all: AgentStateMutation = {};
  for (const subscriber of subscribers) {
    try {
      const returned = yield (subscriber as Hooks)[name]?.({ ...given, messages, state });
      const mutation = returned as AgentStateMutation | undefined; // a hook's type says so
      if (mutation === undefined) continue;
      if (mutation.messages !== undefined && mutation.messages !== messages) {
        messages = all.messages = structuredClone(mutation.messages);
      }
      if (mutation.state !== undefined && mutation.state !== state) {
        state = all.state = structuredClone(mutation.state) as State;
      }
      if (mutation.stopPropagation === undefined) delete all.stopPropagation;
      else all.stopPropagation = mutation.stopPropagation;
      if (all.stopPropagation === true) break;
    } catch (error) {
      if (error instanceof TypeError && isTest()) throw error;
      console.error("Subscriber error:", error);
    }
  }
  return all;
}
