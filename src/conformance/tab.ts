import type { AbstractAgent, BaseEvent, Message, RunAgentInput } from "@ag-ui/client";
import { equalJson } from "../run/json.js";
import { freshId, type Thread } from "./bench.js";
import { expectSame } from "./expect.js";
import { mustAgree, NOTHING, rebuild, type View } from "./view.js";

export const userMessage = (content: string): Message & { role: "user" } => ({
  id: freshId("user"),
  role: "user",
  content,
});

/** Fields of a request besides its messages. */
export type Asked = Partial<Pick<RunAgentInput, "runId" | "state" | "resume" | "tools">>;

/** An AG-UI client: it sends all messages that it has, and applies the events of its runs. */
export class Tab {
  view: View = NOTHING;

  constructor(readonly thread: Thread) {}

  /** The input of a run with all messages of the client, and a new user message if `text` is given. */
  ask(text?: string, asked: Asked = {}): RunAgentInput {
    // Clients without a state send {}.
    if (asked.state !== undefined && !equalJson(asked.state, {})) this.view = { ...this.view, state: asked.state };
    if (text !== undefined) this.view = { ...this.view, messages: [...this.view.messages, userMessage(text)] };
    return this.inputOf(this.view.messages, asked);
  }

  /** The input of a run with these messages. */
  inputOf(messages: readonly Message[], asked: Asked = {}): RunAgentInput {
    return {
      threadId: this.thread.threadId,
      runId: freshId("run"),
      state: structuredClone(this.view.state),
      // Activities stay with the client, as in AbstractAgent.
      messages: structuredClone(messages.filter((message) => message.role !== "activity")),
      tools: [],
      context: [],
      forwardedProps: {},
      ...asked,
    };
  }

  /** Applies the events of its own run. */
  async take(events: readonly BaseEvent[]): Promise<void> {
    this.view = await rebuild("the run's own events", events, this.view);
  }

  /** A complete run of a good agent. */
  async turn(agent: AbstractAgent, text: string, asked?: Asked): Promise<BaseEvent[]> {
    const events = await this.thread.run(agent, this.ask(text, asked)).all();
    await this.take(events);
    return events;
  }

  /** As {@link mustBeOnReplay}, and the state is this one. */
  async mustBeOnReplayWith(state: unknown): Promise<View> {
    const view = await this.mustBeOnReplay();
    expectSame(view.state, state, "the replay must have the true state");
    return view;
  }

  /** A new client that connects must rebuild what this one has. */
  async mustBeOnReplay(thread = this.thread, when = "the replay"): Promise<View> {
    const events = await thread.replay();
    const view = await rebuild(when, events);
    mustAgree(when, view, this.view);
    return view;
  }
}
