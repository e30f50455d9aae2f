import type { Endpoint } from "comlink";

/**
 * Comlink follows any property path of the exposed object, and also sets and constructs on request. This guard passes
 * only calls of the object's own methods with plain arguments.
 *
 * @param exposed the object passed to `expose`
 */
export function guardedEndpoint(port: MessagePort, exposed: object): Endpoint {
  return {
    postMessage: (message, transfer) => port.postMessage(message, transfer ?? []),
    addEventListener(type, listener) {
      port.addEventListener(type, (event) => {
        // Comlink's listener is a function.
        if (isAllowedCall((event as MessageEvent).data, exposed)) (listener as EventListener)(event);
      });
    },
    // Only called for a message that releases the object, and the guard drops those.
    removeEventListener: () => undefined,
    start: () => port.start(),
  };
}

function isAllowedCall(data: unknown, exposed: object): boolean {
  if (typeof data !== "object" || data === null) return false;
  const { type, path, argumentList } = data as { type?: unknown; path?: unknown; argumentList?: unknown };
  return (
    type === "APPLY" &&
    Array.isArray(path) &&
    path.length === 1 &&
    typeof path[0] === "string" &&
    Object.hasOwn(exposed, path[0]) &&
    Array.isArray(argumentList) &&
    argumentList.every((argument: { type?: unknown } | null) => argument?.type === "RAW")
  );
}
