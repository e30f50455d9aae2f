import type { RunAgentParameters } from "@ag-ui/client";
import type { Message, Tool, ToolCall } from "@ag-ui/core";
import { Subject, type Observable } from "rxjs";
import { invalidInput } from "../../run/errors.js";
import { cloneJson } from "../../run/json.js";

/** A tool call that waits for the front end, as a page shows it. */
export interface ShownToolCall {
  readonly toolCallId: string;
  readonly name: string;
  /**
   * - `open`: waits for a tab that offers the tool, or for an answer. Of a run of another device: for a tab there.
   * - `running`: a handler runs; `isHere`: in this tab.
   * - `interrupted`: its tab has died in the middle of a handler that must not run twice: run it again, or answer it.
   * - `answered`: has its result; the agent goes on when all have theirs.
   */
  readonly status: "open" | "running" | "interrupted" | "answered";
  readonly isHere: boolean;
  /** A run of another device has called: tabs there run the handler. Here somebody may answer, or have it run here. */
  readonly elsewhere?: true;
  /** Of one that is answered: the id that the message with its result has. */
  readonly resultId?: string;
}

/** The same list each time: whoever compares lists need not look into it. */
export const NO_CALLS: readonly ShownToolCall[] = [];

/** What a handler is told of its call. */
export interface ToolCallContext {
  readonly threadId: string;
  readonly toolCallId: string;
  readonly name: string;
  /** The id that the message with the result will have. */
  readonly resultId: string;
  /**
   * Aborts when the result is not wanted any more: somebody else has answered the call, or the thread went on without. Of what
   * other tabs do, this one hears while it shows the thread, and when it shows it again.
   */
  readonly signal: AbortSignal;
}

/** A tool that runs in the page. */
export interface FrontendTool<Args = unknown> extends Tool {
  /** The agent that may call it. Default: each. */
  readonly agentId?: string;
  /**
   * Runs a call in one tab. What it returns, or resolves with, is the result: text as it is, anything else as JSON,
   * undefined as "". If it throws, the agent is told the error's message. Absent: somebody is asked, and answers by
   * `answerToolCall`.
   *
   * @param args the call's arguments as the agent gave them, parsed and not checked
   */
  readonly handler?: (args: Args, context: ToolCallContext) => unknown;
  /**
   * Whether a handler that was cut off by the end of its tab may run again, in another tab or after the reload. Default
   * true. False: the call is `interrupted` then, until somebody has it run again or gives a result.
   */
  readonly repeatable?: boolean;
  /** Whether the agent goes on at once when its calls have results. Default true. False: with the next message. */
  readonly followUp?: boolean;
}

/** What runs calls asks of the tools that a page offers. */
export type OfferedTools = Pick<FrontendTools, "changes$" | "definitions" | "find" | "isEmpty">;

/** The tools that a page offers to agents. */
export class FrontendTools {
  /** By name and agent: the last one is offered. */
  private readonly tools = new Map<string, readonly FrontendTool[]>();
  private readonly changed = new Subject<void>();
  /** Emits when tools were added or removed. */
  readonly changes$: Observable<void> = this.changed.asObservable();

  /**
   * Offers a tool, in place of one that has its name (and agent) already, until it is taken back.
   *
   * @returns takes it back
   * @throws RunnerError `invalid-input` for a tool without a name
   */
  add<Args>(tool: FrontendTool<Args>): () => void {
    if (typeof tool?.name !== "string" || tool.name === "") {
      throw invalidInput("name", "a front-end tool needs a name");
    }
    const key = keyOf(tool.name, tool.agentId);
    // Arguments are what the agent gives, whatever the handler takes them for.
    const added = { ...tool } as FrontendTool;
    this.tools.set(key, [...(this.tools.get(key) ?? []), added]);
    this.changed.next();
    return () => {
      const offered = this.tools.get(key) ?? [];
      if (!offered.includes(added)) return;
      this.tools.set(
        key,
        offered.filter((one) => one !== added),
      );
      this.changed.next();
    };
  }

  /** Whether no tool is offered. */
  get isEmpty(): boolean {
    return [...this.tools.values()].every((offered) => offered.length === 0);
  }

  /** The tool that answers an agent's calls of this name. One of the agent's own comes before one of all agents. */
  find(name: string, agentId: string | undefined): FrontendTool | undefined {
    return (this.tools.get(keyOf(name, agentId)) ?? []).at(-1) ?? this.tools.get(keyOf(name, undefined))?.at(-1);
  }

  /** The definitions for `RunAgentInput.tools` of an agent's runs. */
  definitions(agentId: string | undefined): Tool[] {
    const names = new Set(
      [...this.tools.values()]
        .flat()
        .filter((tool) => isFor(tool, agentId))
        .map(({ name }) => name),
    );
    return [...names].map((name) => definitionOf(this.find(name, agentId)!));
  }
}

const isFor = (tool: FrontendTool, agentId: string | undefined): boolean =>
  tool.agentId === undefined || tool.agentId === agentId;

const keyOf = (name: string, agentId: string | undefined): string => JSON.stringify([name, agentId ?? null]);

function definitionOf(tool: FrontendTool): Tool {
  const { agentId: _agent, handler: _handler, repeatable: _repeatable, followUp: _followUp, ...definition } = tool;
  // A page's framework may have given it as proxies, which cannot be sent.
  return cloneJson(definition);
}

/** The tool calls of messages, in order. */
export const callsIn = (messages: readonly Message[]): readonly ToolCall[] =>
  messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []));

/** Parameters of a run with tools in addition to their own, which have precedence. */
export function withTools<P extends Pick<RunAgentParameters, "tools">>(
  parameters: P,
  definitions: NonNullable<RunAgentParameters["tools"]>,
): P {
  if (definitions.length === 0) return parameters;
  const own = parameters.tools ?? [];
  const names = new Set(own.map(({ name }) => name));
  return { ...parameters, tools: [...own, ...definitions.filter(({ name }) => !names.has(name))] };
}
