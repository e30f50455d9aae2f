import { messageOf, RUNNER_ERROR_CODES, RunnerError, type RunnerErrorCode } from "../run/errors.js";
import type { Reply, RunnerErrorData } from "./shapes.js";

/** An error as data: comlink keeps only its name, message and stack. */
export function toErrorData(error: unknown): RunnerErrorData {
  if (RunnerError.is(error)) {
    return { code: error.code, message: error.message, details: cloneable(error.details) };
  }
  const name = error instanceof Error ? `${error.name}: ` : "";
  return { code: "host-failed", message: `${name}${messageOf(error)}`, details: {} };
}

/** Whether it can be handed to {@link fromErrorData}, which takes any code; details are only passed on. */
export function isErrorData(data: unknown): data is RunnerErrorData {
  const { code, message } = (data ?? {}) as Partial<RunnerErrorData>;
  return typeof code === "string" && typeof message === "string";
}

export function fromErrorData(data: RunnerErrorData): RunnerError {
  const known = (RUNNER_ERROR_CODES as readonly string[]).includes(data.code);
  const code: RunnerErrorCode = known ? data.code : "host-failed";
  return new RunnerError(code, data.details, { message: data.message });
}

/** The result of `work`, or its error, as data; never rejects. */
export async function reply<T>(work: () => Promise<T> | T): Promise<Reply<T>> {
  try {
    return { ok: await work() };
  } catch (error) {
    return { error: toErrorData(error) };
  }
}

export function unwrap<T>(answer: Reply<T>): T {
  if ("error" in answer) throw fromErrorData(answer.error);
  return answer.ok;
}

function cloneable(details: RunnerErrorData["details"]): RunnerErrorData["details"] {
  try {
    return structuredClone(details);
  } catch {
    return {};
  }
}
