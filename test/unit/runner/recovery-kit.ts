import { EventType, type AbstractAgent, type BaseEvent, type Message } from "@ag-ui/client";
import { isContinuing, repeatableToolsOf } from "../../../src/run/hosted.js";
import type { RecoveryPolicy } from "../../../src/run/recovery.js";
import type { LocalAgentRunner } from "../../../src/runner/local-agent-runner.js";
import type { RunStore } from "../../../src/storage/run-store.js";
import type { LiveRun } from "../../../src/runner/live/live-run.js";
import { defineAgent } from "../../../src/worker/define-agent.js";

/** One turn of a scripted model: it says something, then calls tools. */
export interface ScriptedStep {
  readonly text: string;
  readonly tools: readonly string[];
}

/** What happened outside of the log: it survives every host. */
export interface World {
  /** How often each call was executed, by its id. */
  readonly executed: Map<string, number>;
  /** Calls of each tool that were made, by id. */
  readonly names: Map<string, string>;
  /** Called before each event that is emitted; may never return, as where the host died. */
  readonly before: (what: string) => Promise<void> | void;
}

const textOf = (message: Message | undefined): string => (typeof message?.content === "string" ? message.content : "");

/** An agent that goes on from what is there: text under its id, open calls under theirs. */
export const continuingAgent = (
  steps: readonly ScriptedStep[],
  world: World,
  repeatableTools: readonly string[] = [],
) =>
  defineAgent<BaseEvent>(
    async function* ({ messages }, { committed }) {
      const results = new Set(messages.map((message) => (message.role === "tool" ? message.toolCallId : undefined)));
      const calls = new Set(
        messages
          .flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []))
          .map(({ id }) => id),
      );
      for (const [n, { text, tools }] of steps.entries()) {
        const messageId = `a${n}`;
        const held = messages.find(({ id }) => id === messageId);
        const rest = text.slice(textOf(held).length);
        if (rest !== "" || held === undefined) {
          await world.before(`text ${n}`);
          yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
          for (const delta of rest) {
            await world.before(`delta ${n}`);
            yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta };
          }
          yield { type: EventType.TEXT_MESSAGE_END, messageId };
        }
        const ids = tools.map((name, at) => ({ name, toolCallId: `c${n}.${at}` }));
        for (const { name, toolCallId } of ids) {
          if (calls.has(toolCallId)) continue;
          await world.before(`call ${toolCallId}`);
          yield { type: EventType.TOOL_CALL_START, toolCallId, toolCallName: name, parentMessageId: messageId };
          yield { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: "{}" };
          await world.before(`arguments ${toolCallId}`);
          yield { type: EventType.TOOL_CALL_END, toolCallId };
        }
        for (const { name, toolCallId } of ids) {
          if (results.has(toolCallId)) continue;
          await committed();
          await world.before(`execute ${toolCallId}`);
          world.names.set(toolCallId, name);
          world.executed.set(toolCallId, (world.executed.get(toolCallId) ?? 0) + 1);
          await world.before(`result ${toolCallId}`);
          yield {
            type: EventType.TOOL_CALL_RESULT,
            messageId: `t-${toolCallId}`,
            toolCallId,
            content: "done",
            role: "tool",
          };
        }
      }
    },
    { agentId: "test", continues: true, repeatableTools: [...repeatableTools] },
  );

/** The same model behind a server that is asked again: it goes by the results that it is given, and makes new ids. */
export const askedAgent = (steps: readonly ScriptedStep[], world: World) =>
  defineAgent<BaseEvent>(
    async function* ({ messages, runId }, { committed }) {
      const answered = messages.filter(({ role }) => role === "tool").length;
      let done = 0;
      for (const [n, { text, tools }] of steps.entries()) {
        const settled = tools.length > 0 ? done + tools.length <= answered : answered > done;
        const missing = tools.slice(Math.max(0, answered - done));
        done += tools.length;
        if (settled) continue;
        const messageId = `${runId}-${n}`;
        await world.before(`text ${n}`);
        yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
        for (const delta of text) {
          await world.before(`delta ${n}`);
          yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta };
        }
        yield { type: EventType.TEXT_MESSAGE_END, messageId };
        for (const [at, name] of missing.entries()) {
          const toolCallId = `${messageId}.${at}`;
          yield { type: EventType.TOOL_CALL_START, toolCallId, toolCallName: name, parentMessageId: messageId };
          yield { type: EventType.TOOL_CALL_END, toolCallId };
          // A server does not wait for that: a call that it makes just before a kill leaves no trace.
          await committed();
          await world.before(`execute ${toolCallId}`);
          world.names.set(toolCallId, name);
          world.executed.set(toolCallId, (world.executed.get(toolCallId) ?? 0) + 1);
          await world.before(`result ${toolCallId}`);
          yield {
            type: EventType.TOOL_CALL_RESULT,
            messageId: `t-${toolCallId}`,
            toolCallId,
            content: "done",
            role: "tool",
          };
        }
      }
    },
    { agentId: "test" },
  );

/** The store of a runner: protected, since only tests look into it from outside. */
export const storeOf = (runner: LocalAgentRunner): RunStore =>
  (runner as unknown as { readonly engine: { readonly parts: { readonly store: RunStore } } }).engine.parts.store;

/** Has a runner recover its broken runs by this policy; it starts nothing by itself. */
export function withPolicy<R extends LocalAgentRunner>(runner: R, policy: RecoveryPolicy): R {
  runner.recoverBy(() => policy);
  return runner;
}

/** What the starter of a runtime does with the first waiting run of a thread. @returns undefined where none goes on */
export async function startWaiting(
  runner: LocalAgentRunner,
  threadId: string,
  agent: AbstractAgent,
): Promise<LiveRun | undefined> {
  const [first] = await storeOf(runner).waitingRuns(threadId);
  if (first?.kind !== "recovery") return undefined;
  const recoveries = await runner.recoveries();
  const about = { continues: isContinuing(agent), repeatableTools: repeatableToolsOf(agent) };
  if ((await recoveries.decide(first, about)) === undefined) return undefined;
  const input = await recoveries.input(first, async () => about);
  if (input === undefined) return undefined;
  const { agentId, attempt } = first;
  const run = runner.start({ threadId, agentId, agent, input, partial: { stateSet: false }, attempt, waiting: true });
  await run.started;
  return run;
}
