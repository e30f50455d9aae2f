import "fake-indexeddb/auto";
import { EventType, HttpAgent, type BaseEvent } from "@ag-ui/client";
import type { ConnectRuntimeOptions } from "ag-ui-local-runtime/client";
import type { ForwardHeadersOptions } from "ag-ui-local-runtime/runtime";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { inputOf, postOf, served, type Served } from "./integrations/kit.js";
import { serveOnLoopback, type LoopbackServer } from "./integrations/mcp-server.js";

/** A request that reached the server behind the agent: its headers as they stood in it, name and value by turns. */
interface Arrived {
  readonly threadId: string;
  readonly raw: readonly string[];
}

let upstream: LoopbackServer;
const arrived: Arrived[] = [];
/** The server answers when so many requests are there, so that they are under way at once. */
let together = 1;
let waiting: (() => void)[] = [];

beforeAll(async () => {
  upstream = await serveOnLoopback(async (req, res) => {
    let body = "";
    for await (const chunk of req) body += String(chunk);
    const { threadId, runId } = JSON.parse(body) as { threadId: string; runId: string };
    arrived.push({ threadId, raw: req.rawHeaders });
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      if (waiting.length >= together) waiting.splice(0).forEach((answer) => answer());
    });
    const events: BaseEvent[] = [
      { type: EventType.RUN_STARTED, threadId, runId },
      { type: EventType.RUN_FINISHED, threadId, runId },
    ];
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
  });
});
afterAll(() => upstream.close());
beforeEach(() => {
  arrived.length = 0;
  together = 1;
  waiting = [];
});

/** What fetch itself sends. */
const OF_FETCH = /^(host|connection|content-|accept|user-agent|sec-fetch-|transfer-encoding|cache-control|pragma)/;

/** Each header of the request that somebody meant to send, one entry for each time that it stands in it. */
function headersOf({ raw }: Arrived): string[] {
  const lines: string[] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at]!.toLowerCase();
    if (!OF_FETCH.test(name)) lines.push(`${name}: ${raw[at + 1]}`);
  }
  return lines.toSorted();
}

const remote = (headers: Record<string, string> = {}): HttpAgent => new HttpAgent({ url: upstream.origin, headers });

const SENT = {
  authorization: "Bearer person",
  "X-Tenant": "acme",
  cookie: "session=1",
  "x-forwarded-for": "10.0.0.1",
  "x-vercel-id": "fra1",
  "x-request-id": "1",
  "x-internal-key": "k",
  "accept-language": "de",
};

/** Runs the agent once, by each way in. */
const ways: readonly (readonly [string, (here: Served, headers: Record<string, string>) => Promise<unknown>])[] = [
  ["HTTP", ({ events }, headers) => events("/agent/remote/run", inputOf("t", "r"), headers)],
  ["a tab", ({ tab }, headers) => tab({ headers }).agent("remote", { threadId: "t" }).runAgent()],
];

describe.each(ways)("what a person sends by %s", (_, run) => {
  test.each<[string, ForwardHeadersOptions | undefined, string[]]>([
    ["by default", undefined, ["x-internal-key: k", "x-tenant: acme"]],
    ["with a list of what is denied", { deny: ["X-Tenant"], denyPrefixes: ["x-internal-"] }, []],
    ["with a list of what is allowed", { allow: ["Cookie", "X-Tenant"] }, ["cookie: session=1", "x-tenant: acme"]],
    [
      "with both, of which denial wins",
      { allow: ["x-tenant", "authorization"], deny: ["authorization"] },
      ["x-tenant: acme"],
    ],
    [
      "with what platforms add",
      { useDefaultDenylist: false, allow: ["x-forwarded-for", "x-request-id"] },
      ["x-forwarded-for: 10.0.0.1", "x-request-id: 1"],
    ],
  ])("reaches the agent's server %s", async (_name, forwardHeaders, expected) => {
    const here = served({ agents: { remote: remote() }, ...(forwardHeaders && { forwardHeaders }) });
    await run(here, SENT);
    expect(arrived.map(headersOf)).toEqual([expected]);
  });

  test("gives way to the agent's own, in whatever spelling, and no name stands there twice", async () => {
    const here = served({
      agents: { remote: remote({ Authorization: "Bearer server", "X-Own": "1" }) },
      forwardHeaders: { allow: ["authorization", "x-own", "x-tenant"] },
    });
    await run(here, { authorization: "Bearer person", "X-OWN": "2", "x-tenant": "acme" });
    expect(arrived.map(headersOf)).toEqual([["authorization: Bearer server", "x-own: 1", "x-tenant: acme"]]);
  });

  test("is kept nowhere: the next run of another person has nothing of it", async () => {
    const here = served({ agents: { remote: remote() } });
    await run(here, SENT);
    await here.events("/agent/remote/run", inputOf("t", "next"));
    expect(arrived.map(headersOf).at(-1)).toEqual([]);
    const { runner } = here.tab();
    expect(JSON.stringify(await runner().getThreadEvents("t"))).not.toContain("Bearer");
  });
});

test("a suggestion is asked for with them, too", async () => {
  const { events } = served({ agents: { remote: remote() }, forwardHeaders: { allow: ["authorization"] } });
  await events("/agent/remote/suggest", inputOf("t", "r"), { authorization: "Bearer person" });
  expect(arrived.map(headersOf)).toEqual([["authorization: Bearer person"]]);
});

test("a tab's are asked for at each run, and what its middleware puts into their place counts", async () => {
  const here = served({
    agents: { remote: remote() },
    forwardHeaders: { allow: ["authorization", "x-seen"] },
    beforeRequestMiddleware: ({ request }) => {
      const headers = new Headers(request.headers);
      headers.set("x-seen", "1");
      return new Request(request, { headers });
    },
  });
  let token = 0;
  const headers: ConnectRuntimeOptions["headers"] = async () => ({ authorization: `Bearer ${++token}` });
  const agent = here.tab({ headers }).agent("remote", { threadId: "t" });
  await agent.runAgent();
  const first = token;
  await agent.runAgent();
  expect(token).toBeGreaterThan(first);
  const [one, other] = arrived.map(headersOf);
  expect([one?.at(-1), other?.at(-1)]).toEqual(["x-seen: 1", "x-seen: 1"]);
  expect(one?.[0]).not.toBe(other?.[0]);
});

test("an agent that many people share at once sends each one's own", async () => {
  const people = Array.from({ length: 20 }, (_, n) => `p${n}`);
  together = people.length;
  const shared = remote({ "x-own": "1" });
  const here = served({ agents: { remote: shared }, forwardHeaders: { allow: ["authorization"] } });
  await Promise.all(
    people.map(async (person, n) => {
      const headers = { authorization: `Bearer ${person}` };
      if (n % 2 === 0) return here.events("/agent/remote/run", inputOf(person, "r"), headers);
      return here.tab({ headers }).agent("remote", { threadId: person }).runAgent();
    }),
  );
  expect(arrived).toHaveLength(people.length);
  for (const each of arrived) {
    expect(headersOf(each)).toEqual([`authorization: Bearer ${each.threadId}`, "x-own: 1"]);
  }
  expect(shared.headers).toEqual({ "x-own": "1" });
});

test("a request that is refused reaches nobody", async () => {
  const here = served({
    agents: { remote: remote() },
    beforeRequestMiddleware: () => {
      throw Object.assign(new Error("Sign in"), { status: 401 });
    },
  });
  const { status } = await here.fetch("/agent/remote/run", postOf(inputOf("t", "r"), SENT));
  const refused = vi.fn();
  await here.tab({ headers: SENT }).agent("remote", { threadId: "t" }).runAgent().catch(refused);
  expect([status, refused.mock.calls.length, arrived]).toEqual([401, 1, []]);
});
