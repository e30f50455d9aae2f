import type { Endpoint } from "comlink";

/**
 * Comlink walks any path of the exposed object, and sets and constructs where it is told to. This lets through calls of
 * the methods named, with plain arguments, and nothing else.
 */
export function guardedEndpoint(port: MessagePort, methods: ReadonlySet<string>): Endpoint {
  const guards = new Map<unknown, (event: Event) => void>();
  return {
    postMessage: (message, transfer) => port.postMessage(message, transfer ?? []),
    addEventListener(type, listener) {
      const guard = (event: Event): void => {
        if (!isAllowedCall((event as MessageEvent).data, methods)) return;
        if (typeof listener === "function") listener(event);
        else listener.handleEvent(event);
      };
      guards.set(listener, guard);
      port.addEventListener(type, guard);
    },
    removeEventListener(type, listener) {
      const guard = guards.get(listener);
      if (guard !== undefined) port.removeEventListener(type, guard);
    },
    start: () => port.start(),
  };
}

function isAllowedCall(data: unknown, methods: ReadonlySet<string>): boolean {
  if (typeof data !== "object" || data === null) return false;
  const { type, path, argumentList } = data as { type?: unknown; path?: unknown; argumentList?: unknown };
  return (
    type === "APPLY" &&
    Array.isArray(path) &&
    path.length === 1 &&
    methods.has(path[0]) &&
    Array.isArray(argumentList) &&
    argumentList.every((argument: { type?: unknown } | null) => argument?.type === "RAW")
  );
}
