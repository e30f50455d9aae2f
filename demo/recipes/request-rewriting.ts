import type { BeforeRequestMiddleware } from "ag-ui-local-runtime/runtime";

export interface RunAdditions {
  /** The text of a system message in front of a new thread's messages. It is kept with the thread, once. */
  readonly system?: string;
  /** Fields for the agent, over those that the caller sent. They are not kept. */
  readonly forwardedProps?: Readonly<Record<string, unknown>>;
}

/**
 * Gives each run something that its caller need not know or must not choose: rules for the model, a tenant, a budget.
 *
 * Its limits: whoever reads the thread reads its system message, unless a filter hides it. A thread keeps the one that it
 * has, also where `system` is another text now; and in a thread that was begun before there was any, it stands behind the
 * history. A rule that changes is better the agent's own, in front of each run's messages and kept in no thread:
 * `agent.use((input, next) => next.run({ ...input, messages: [rule, ...input.messages] }))`.
 */
export function requestRewriting({ system, forwardedProps = {} }: RunAdditions): BeforeRequestMiddleware {
  return async ({ request, resolved: { route } }) => {
    if (route !== "agent/run" && route !== "agent/suggest") return undefined;
    const input: unknown = await request
      .clone()
      .json()
      .catch(() => undefined);
    // What is no input the runtime refuses, with its own words.
    if (!isInput(input)) return undefined;
    const messages = input.messages.filter(({ id }) => id !== SYSTEM_ID);
    const body = {
      ...input,
      messages: system === undefined ? messages : [{ id: SYSTEM_ID, role: "system", content: system }, ...messages],
      forwardedProps: { ...input.forwardedProps, ...forwardedProps },
    };
    return new Request(request, { method: "POST", body: JSON.stringify(body) });
  };
}

const SYSTEM_ID = "system";

interface PostedInput {
  readonly messages: readonly { readonly id?: unknown }[];
  readonly forwardedProps?: object;
}

function isInput(input: unknown): input is PostedInput {
  const { messages } = (input ?? {}) as { readonly messages?: unknown };
  return Array.isArray(messages) && messages.every((message) => typeof message === "object" && message !== null);
}
