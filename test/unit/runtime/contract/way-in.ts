/*
 * What the contract's cases know of a runtime: how to ask it. Neither this file nor any that it or the cases import needs
 * Node or a test framework, so the same cases run in pages, in workers and against a server.
 */

/** One way into a runtime with the agents of `contractRuntimeOptions()`. */
export interface WayIn {
  readonly name: string;
  /** Requests travel as envelopes to one endpoint: what an envelope cannot say cannot be asked here. */
  readonly single?: boolean;
  /** Asks for a path below the base path. The signal of `init`, and cancelling the body, tell the runtime that the reader left. */
  request(path: string, init?: RequestInit): Promise<Response>;
  /** The whole address of a path, for clients that take one; {@link fetchOf} understands it. */
  url(path: string): string;
  close(): Promise<void>;
}

/** The `fetch` of a client whose addresses come from {@link WayIn.url}. */
export function fetchOf(way: WayIn): (url: string, init?: RequestInit) => Promise<Response> {
  const base = way.url("");
  return (url, init) => {
    if (!url.startsWith(base)) throw new Error(`${url} does not lead to ${way.name}`);
    return way.request(url.slice(base.length), init);
  };
}

/** A way to one endpoint, as front ends go that use one: each request is put into an envelope. */
export function enveloped(inner: WayIn): WayIn {
  return {
    name: inner.name,
    single: true,
    request: (path, init = {}) => {
      const { method: _method, body: _body, headers, ...rest } = init;
      const sent = new Headers(headers);
      sent.set("Content-Type", "application/json");
      return inner.request("", {
        ...rest,
        method: "POST",
        headers: sent,
        body: JSON.stringify(envelopeOf(path, init)),
      });
    },
    url: (path) => inner.url(path),
    close: () => inner.close(),
  };
}

/** The envelope that asks for what a request of a route of its own would. */
export function envelopeOf(path: string, { method = "GET", body }: RequestInit): object {
  const given = bodyOf(body);
  if (path === "/info") return { method: "info" };
  if (path === "/transcribe") return { method: "transcribe", body: given };
  const [, agentId, work, threadId] = /^\/agent\/([^/]+)\/(\w+)(?:\/([^/]+))?$/.exec(path) ?? [];
  if (agentId === undefined) {
    return { method: "resource/request", params: { path, httpMethod: method }, ...(body != null && { body: given }) };
  }
  const params = { agentId: decodeURIComponent(agentId) };
  if (threadId === undefined) return { method: `agent/${work}`, params, body: given };
  const stop = { ...params, threadId: decodeURIComponent(threadId) };
  return { method: `agent/${work}`, params: stop, ...(body != null && { body: given }) };
}

/** What is no JSON goes as the text that it is: the endpoint is to say what is wrong with it. */
function bodyOf(body: BodyInit | null | undefined): unknown {
  if (typeof body !== "string") return undefined;
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return body;
  }
}
