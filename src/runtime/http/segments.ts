/** Whether an id can be a path segment: a URL parser, here or in a proxy, must not rewrite it. */
export function isSegment(id: string): boolean {
  return id !== "" && id !== "." && id !== ".." && !id.includes("\\") && id.isWellFormed();
}

/**
 * Whether a URL parser leaves the path of a request as it is: no `.` or `..` in any spelling, no backslash, no
 * characters that are dropped. A guard that compares the text and a runtime that parses the URL then see the same
 * path. https://url.spec.whatwg.org/#path-state
 *
 * @param target path and query as sent
 */
export function isPlainTarget(target: string): boolean {
  const path = target.split(/[?#]/, 1)[0]!;
  return !/[\0-\x20\x7f\\]/.test(path) && path.split("/").every((segment) => !/^(?:\.|%2e){1,2}$/i.test(segment));
}

/** Undefined where it is malformed. */
export function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/**
 * The ids in a path, decoded. Fixed segments are compared before decoding.
 *
 * @param pattern segments; one that begins with ":" is a placeholder for an id
 * @returns undefined for a path of another form, or if an id is empty or malformed
 */
export function idsIn(segments: readonly string[], pattern: readonly string[]): Record<string, string> | undefined {
  if (segments.length !== pattern.length) return undefined;
  const ids: Record<string, string> = {};
  for (const [at, expected] of pattern.entries()) {
    const segment = segments[at]!;
    if (expected.startsWith(":")) {
      const id = decoded(segment);
      if (!id) return undefined;
      ids[expected.slice(1)] = id;
    } else if (segment !== expected) return undefined;
  }
  return ids;
}
