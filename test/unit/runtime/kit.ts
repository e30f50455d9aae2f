import { AbstractAgent, EventType, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import {
  AgentRuntime,
  type AfterRequestContext,
  type AfterRequestMiddleware,
  type AgentRuntimeOptions,
} from "ag-ui-local-runtime/runtime";
import { Observable, throwError } from "rxjs";
import { onTestFinished } from "vitest";
import { agentOf, counter, freshDb, quiet, rawAgent, silent } from "../runner/kit.js";

/** Answers with one message. */
export const answering = (text: (input: RunAgentInput) => string): AbstractAgent =>
  agentOf(async function* (input) {
    const messageId = `${input.runId}-a`;
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: text(input) };
    yield { type: EventType.TEXT_MESSAGE_END, messageId };
  });

/** Tells the headers that it would send to its server. */
export class HeadersAgent extends AbstractAgent {
  constructor(public headers: Record<string, string> = {}) {
    super({});
  }

  override run({ threadId, runId }: RunAgentInput): Observable<BaseEvent> {
    const messageId = `${runId}-a`;
    const delta = JSON.stringify(this.headers);
    return new Observable((subscriber) => {
      subscriber.next({ type: EventType.RUN_STARTED, threadId, runId } as BaseEvent);
      subscriber.next({ type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent);
      subscriber.next({ type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta } as BaseEvent);
      subscriber.next({ type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent);
      subscriber.next({ type: EventType.RUN_FINISHED, threadId, runId } as BaseEvent);
      subscriber.complete();
    });
  }

  override clone(): HeadersAgent {
    const copy = super.clone() as HeadersAgent;
    copy.headers = this.headers;
    return copy;
  }
}

/** A runtime that is closed when the test ends. Its agents: `counter` counts to 3, `other`, `silent`, `failing`. */
export function runtimeWith(options: Partial<AgentRuntimeOptions> = {}): AgentRuntime {
  const runtime = new AgentRuntime({
    logger: quiet,
    ...(options.runner === undefined && { dbName: freshDb(), stopGraceMs: 50 }),
    agents: {
      counter: agentOf(counter(3)),
      other: answering(() => "the other"),
      teller: answering(({ messages }) => messages.map(({ content }) => content as string).join("|")),
      headers: new HeadersAgent(),
      silent: agentOf(silent),
      failing: rawAgent(() => throwError(() => new Error("the agent failed"))),
    },
    ...options,
  });
  onTestFinished(() => runtime.close());
  return runtime;
}

/** What a runtime told of requests that are over, as plain data. */
export interface Told {
  readonly path: string;
  readonly status: number;
  readonly threadId?: string;
  readonly runId?: string;
  /** Texts of the messages. */
  readonly texts: readonly unknown[];
}

/** A middleware that is told of the end, and what it was told. */
export function recorder(): { readonly told: Told[]; readonly afterRequestMiddleware: AfterRequestMiddleware } {
  const told: Told[] = [];
  return {
    told,
    afterRequestMiddleware: ({ path, response, threadId, runId, messages }: AfterRequestContext) => {
      told.push({
        path,
        status: response.status,
        ...(threadId !== undefined && { threadId }),
        ...(runId !== undefined && { runId }),
        texts: messages.map(({ content }) => content),
      });
    },
  };
}
