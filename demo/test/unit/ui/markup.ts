/** What a template says, markup included; without what directives make. */
export function markupOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(markupOf).join("");
  if (typeof value === "string" || typeof value === "number") return String(value);
  const { strings, values } = (value ?? {}) as { strings?: readonly string[]; values?: readonly unknown[] };
  if (strings === undefined || values === undefined) return "";
  return strings.map((part, at) => part + markupOf(values[at])).join("");
}
