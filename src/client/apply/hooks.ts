import type { AgentStateMutation, AgentSubscriber } from "@ag-ui/client";
import type { EventType } from "@ag-ui/core";

type Hook = (given: object) => void | AgentStateMutation | Promise<void | AgentStateMutation>;
export type Hooks = Readonly<Record<string, Hook | undefined>>;

const names = new Map<EventType, string>();

/** The AgentSubscriber hook of an event type: `onTextMessageStartEvent` of TEXT_MESSAGE_START. */
export function hookOf(type: EventType): string {
  let name = names.get(type);
  if (name === undefined) {
    const words = type.split("_").map((word) => word[0] + word.slice(1).toLowerCase());
    names.set(type, (name = `on${words.join("")}Event`));
  }
  return name;
}

export const hasHook = (subscribers: readonly AgentSubscriber[], name: string): boolean =>
  // By name, which the types cannot express; each hook is given what its event type asks for.
  subscribers.some((subscriber) => (subscriber as Hooks)[name] !== undefined);

/** Whether somebody wants each event of this type by itself. */
export const watches = (subscribers: readonly AgentSubscriber[], type: EventType): boolean =>
  hasHook(subscribers, "onEvent") || hasHook(subscribers, hookOf(type));

/** Calls a hook of each subscriber without awaiting it. */
export function tell(subscribers: readonly AgentSubscriber[], name: string, given: object): unknown[] {
  return subscribers.map((subscriber) => (subscriber as Hooks)[name]?.(given));
}
