import { isRecord } from "../run/json.js";
import type { ToolResult } from "../run/pending-tool-calls.js";
import type { PlacedRequest } from "../runner/request.js";
import type { RunRequest } from "../wire/shapes.js";

/** A run that a device asks the servers of the space for. */
export interface AskedRun {
  /** When, in ms since the Unix epoch, as the asking device has it. */
  readonly at: number;
  /** As its caller asked for it; without what counts on that device alone. */
  readonly request: RunRequest;
  /** Of the request, as the asking device has it: what its callers wait for is known by it. */
  readonly fingerprint: string;
  readonly answerId?: string;
  /** Results of front-end tools, which only the asking device has. */
  readonly results?: readonly ToolResult[];
}

const isTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((item: unknown) => typeof item === "string");

const isResult = (value: unknown): boolean =>
  isRecord(value) && value["role"] === "tool" && typeof value["id"] === "string" && isTexts([value["toolCallId"]]);

/** How long a request stands whose device does not wait for it any more, in ms. */
const STANDS_MS = 60_000;

/** @param now of the device that asked */
export const isFresh = ({ at }: AskedRun, now: number): boolean => Math.abs(now - at) < STANDS_MS;

/** Until it is not fresh any more, in ms. */
export const freshFor = ({ at }: AskedRun, now: number): number => at + STANDS_MS - now;

/** What of it must hold to keep it. The request is checked where it is executed. */
export function isAskedRun(value: unknown): boolean {
  if (!isRecord(value) || typeof value["fingerprint"] !== "string" || !isRecord(value["request"])) return false;
  if (!Number.isFinite(value["at"])) return false;
  const { agentId, input } = value["request"];
  const { results = [], answerId = "" } = value;
  const areResults = Array.isArray(results) && results.every(isResult);
  return (
    areResults &&
    typeof answerId === "string" &&
    typeof agentId === "string" &&
    isRecord(input) &&
    Array.isArray(input["tools"]) &&
    input["tools"].every(isRecord)
  );
}

export const isAsker = (value: unknown): boolean =>
  isRecord(value) && typeof value["id"] === "string" && isTexts(value["tools"]);

export const isErrorData = (value: unknown): boolean =>
  isRecord(value) && isTexts([value["code"], value["message"]]) && isRecord(value["details"]);

/** A request as servers get it: nothing of it is about the log of this device alone. */
export function askedRun(request: PlacedRequest, results: readonly ToolResult[], at: number): AskedRun {
  const {
    threadId,
    agentId = "",
    input,
    partial,
    cut,
    branchBefore,
    persistedInputMessages,
    fingerprint,
    answerId,
  } = request;
  return {
    at,
    request: {
      threadId,
      agentId,
      input,
      ...(partial !== undefined && { partial: { stateSet: partial.stateSet } }),
      ...(cut !== undefined && { cut }),
      ...(branchBefore !== undefined && { branchBefore }),
      ...(persistedInputMessages !== undefined && { persistedInputMessages }),
    },
    fingerprint,
    ...(answerId !== undefined && { answerId }),
    ...(results.length > 0 && { results }),
  };
}

/** Names of the tools of a request's page. */
export const toolsOf = ({ input }: Pick<RunRequest, "input">): readonly string[] =>
  input.tools.flatMap(({ name }) => (typeof name === "string" ? [name] : []));
