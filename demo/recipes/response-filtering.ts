import type { FilterEvent } from "ag-ui-local-runtime/runtime";

export interface ResponseFilterOptions {
  /** What is replaced by "…" wherever it stands in a text: expressions with the flag `g`. */
  readonly secrets?: readonly RegExp[];
  /** Leave out what models tell of their reasoning. Default false. */
  readonly hideReasoning?: boolean;
}

/**
 * Keeps secrets and reasoning from readers, in streams, snapshots, messages and state. The log keeps both.
 *
 * Its limits: a secret that comes in two deltas is found in none of them, only in what is read once it is whole; where that
 * must not happen the agent has to see to it. The titles of threads, which are the beginnings of what people wrote, are no
 * events: a filter does not see them.
 */
export function responseFilter({ secrets = [], hideReasoning = false }: ResponseFilterOptions): FilterEvent {
  const shown = (value: unknown, field = ""): unknown => {
    // Ids and types hold the sequence together.
    if (typeof value === "string" && !/^type$|^id$|Id$/.test(field)) {
      return secrets.reduce<string>((text, secret) => text.replaceAll(secret, "…"), value);
    }
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) {
      const hides = hideReasoning && field === "messages";
      return value.filter((item) => !hides || !isReasoning(item)).map((item) => shown(item));
    }
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shown(item, key)]));
  };
  return (event) =>
    hideReasoning && /^(REASONING|THINKING)_/.test(event.type) ? undefined : (shown(event) as typeof event);
}

/** A message of that role, in a snapshot or an input. */
const isReasoning = (item: unknown): boolean => (item as { readonly role?: unknown } | null)?.role === "reasoning";
