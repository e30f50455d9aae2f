/** Threads of which something is kept in memory. */
const KEPT = 16;

/** Keeps what was used last. @param kept by thread; least recently used first */
export function keep<T>(kept: Map<string, T>, threadId: string, value: T): T {
  kept.delete(threadId);
  kept.set(threadId, value);
  for (const oldest of kept.keys()) if (kept.size > KEPT) kept.delete(oldest);
  return value;
}
