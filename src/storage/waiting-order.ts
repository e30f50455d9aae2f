import { defined } from "../platform/defined.js";
import { positionAtFront, type WaitingUpdate } from "./waiting.js";

/** The position of a run that is added at the end. */
export const positionAtEnd = (last: number | undefined): number => (last === undefined ? 0 : Math.floor(last) + 1);

/** A place in the order, and whose it is. */
export interface Placed {
  readonly runId: string;
  readonly position: number;
}

/**
 * Where to put a waiting run that is moved: "there" where it stands there already, undefined where one of the two does
 * not wait. `renumber`: no number is left between the neighbours, all get new ones first.
 *
 * @param order all waiting runs of the thread, in order
 */
export function placeOfMove(
  order: readonly Placed[],
  runId: string,
  before: string | null,
): { readonly is: "there" | "renumber" } | { readonly is: "to"; readonly position: number } | undefined {
  const from = order.findIndex((it) => it.runId === runId);
  const others = order.filter((it) => it.runId !== runId);
  const to = before === null ? others.length : others.findIndex((it) => it.runId === before);
  if (from < 0 || (before !== runId && to < 0)) return undefined;
  if (before === runId || to === from) return { is: "there" };
  const [previous, next] = [others[to - 1]?.position, others[to]?.position];
  if (next === undefined) return { is: "to", position: positionAtEnd(previous) };
  if (previous === undefined) return { is: "to", position: positionAtFront(next) };
  const position = previous + (next - previous) / 2;
  return position > previous && position < next ? { is: "to", position } : { is: "renumber" };
}

/** The row after an update. */
export function updatedWaiting<Row extends { readonly notBefore?: number; readonly error?: object }>(
  row: Row,
  { notBefore, error }: Pick<WaitingUpdate, "notBefore"> & { readonly error?: Row["error"] | null },
): Row {
  const { notBefore: oldTime, error: oldError, ...rest } = row;
  const time = notBefore === undefined ? oldTime : (notBefore ?? undefined);
  const failure = error === undefined ? oldError : (error ?? undefined);
  return {
    ...rest,
    ...defined({ notBefore: time, error: failure }),
    // Both fields are Row's own.
  } as Row;
}
