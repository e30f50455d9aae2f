// Surfaces that a model draws in the thread (A2UI): it calls `render_a2ui`, the surface grows in every tab while it writes, and what
// a person does in it is the agent's next question.
//
//   serveRuntime({ agents: { assistant: aiAgent({ model }) }, a2ui });
//   for (const surface of surfacesOf(messages)) draw(surface); // by a renderer of A2UI 0.9, or your own
//   await act(agent, { surfaceId: "order", name: "buy", sourceComponentId: "b", context: { count: 2 } });
//
// Its limits: the call ends the run, so the model says what it has to say before it draws. Drawing is not linear in the size of
// a surface. A page draws nothing but its catalog: what a model writes is data, and never HTML. Bundlers need `demo/shims/node.ts`
// (guide "A2UI and MCP Apps").
import type { Message } from "@ag-ui/core";
import type { LocalAgent } from "ag-ui-local-runtime/client";
import type { A2UIOptions } from "ag-ui-local-runtime/runtime";

/** What the page can draw: the model is told of it. */
export const CATALOG = [
  { name: "Column", props: { children: "ids of its children" } },
  { name: "Text", props: { text: 'a text, or { "path": "/of/the/data" }' } },
  { name: "Button", props: { child: "id of its label", action: '{ "event": { "name": …, "context": { … } } }' } },
] as const;

/** Option of `serveRuntime`. Without `agents: […]` among its fields every agent is given the tool. */
export const a2ui: A2UIOptions = {
  use: () => import("@ag-ui/a2ui-middleware"),
  injectA2UITool: true,
  schema: CATALOG,
};

/** A surface as the thread has it. */
export interface Surface {
  /** Of its message. */
  readonly id: string;
  /** A2UI 0.9: `createSurface`, `updateComponents`, `updateDataModel`; all of them each time, so apply them to nothing. */
  readonly operations: readonly Readonly<Record<string, unknown>>[];
}

/** The surfaces of a thread's messages, in order; one that has begun has no operations yet. */
export const surfacesOf = (messages: readonly Message[]): Surface[] =>
  messages.flatMap((message) => {
    if (message.role !== "activity" || message.activityType !== "a2ui-surface") return [];
    const { a2ui_operations: operations } = message.content as { a2ui_operations?: Surface["operations"] };
    return [{ id: message.id, operations: operations ?? [] }];
  });

/** What a person did: the `event` of a component's `action`, with what its paths lead to. */
export interface UserAction {
  readonly surfaceId: string;
  readonly sourceComponentId: string;
  readonly name: string;
  readonly context?: Readonly<Record<string, unknown>>;
}

/** Tells the agent what a person did. While it is busy, that waits for its turn. */
export const act = async (agent: LocalAgent, userAction: UserAction): Promise<void> => {
  await agent.runAgent({ forwardedProps: { a2uiAction: { userAction } }, onBusy: "queue" });
};
