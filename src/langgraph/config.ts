import { getCheckpointId } from "@langchain/langgraph-checkpoint";
import type { RunnableConfig } from "@langchain/core/runnables";
import { RunnerError } from "../run/errors.js";

/** A namespace of a thread: the graph itself, or one of its subgraphs. */
export interface Namespace {
  readonly threadId: string;
  readonly ns: string;
}

/** A checkpoint's address. */
export interface CheckpointName extends Namespace {
  readonly id: string;
}

/** The ids in a config; undefined if absent. */
export interface GivenNames {
  readonly threadId: string | undefined;
  readonly ns: string | undefined;
  readonly id: string | undefined;
}

/** @throws RunnerError `invalid-input` */
export function namesIn(config: RunnableConfig | undefined): GivenNames {
  const given: Record<string, unknown> = config?.configurable ?? {};
  return {
    threadId: textOf("thread_id", given["thread_id"], { empty: false }),
    ns: textOf("checkpoint_ns", given["checkpoint_ns"], { empty: true }),
    // An empty id means the newest checkpoint, as in other savers.
    id: textOf("checkpoint_id", (config && getCheckpointId(config)) || undefined, { empty: false }),
  };
}

/** @throws RunnerError `invalid-input` if the config names no thread */
export function namespaceOf({ threadId, ns = "" }: GivenNames): Namespace {
  if (threadId !== undefined) return { threadId, ns };
  throw invalid("thread_id", 'must be set: { configurable: { thread_id: "…" } }');
}

/** The config with which LangGraph finds the checkpoint again. */
export const configOf = ({ threadId, ns, id }: CheckpointName): RunnableConfig => ({
  configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: id },
});

/** Thrown before any read or write; `field` names the caller's invalid input. */
export const invalid = (field: string, must: string, cause?: unknown): RunnerError =>
  new RunnerError("invalid-input", { field }, { message: `${field} ${must}`, ...(cause !== undefined && { cause }) });

function textOf(field: string, value: unknown, { empty }: { empty: boolean }): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string" || (value === "" && !empty)) throw invalid(field, "must be a string that is not empty");
  return value;
}
