/** Whether an id can stand in a path: not where a URL parser, here or in a proxy, would make another path of it. */
export function isSegment(id: string): boolean {
  return id !== "" && id !== "." && id !== ".." && !id.includes("\\") && id.isWellFormed();
}

/**
 * Whether the path of a request is what a URL parser makes of it: no `.` or `..`, however they are spelled, no backslash,
 * nothing that it leaves out. A guard in front that looks at the text, and a runtime that looks at the URL, then see one
 * path. https://url.spec.whatwg.org/#path-state
 *
 * @param target path and query as they were sent
 */
export function isPlainTarget(target: string): boolean {
  const path = target.split(/[?#]/, 1)[0]!;
  return !/[\0-\x20\x7f\\]/.test(path) && path.split("/").every((segment) => !/^(?:\.|%2e){1,2}$/i.test(segment));
}
