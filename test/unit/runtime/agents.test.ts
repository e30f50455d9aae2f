import { AbstractAgent, type BaseEvent } from "@ag-ui/client";
import { InMemoryAgentRunner } from "ag-ui-local-runtime";
import { createRuntimeHandler, type Agents, type AgentsConfig } from "ag-ui-local-runtime/runtime";
import type { Observable } from "rxjs";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { agentOf, counter, freshDb, inputOf, textOf } from "../runner/kit.js";
import { answering, HeadersAgent, runtimeWith } from "./kit.js";
import { connectedTab, WAYS } from "./ways.js";

const record: Agents = { counter: agentOf(counter(3)) };

describe.each(WAYS)("agents, $name", (way) => {
  const open = (agents: AgentsConfig) => way.open(runtimeWith({ agents }));
  const run = async (agents: AgentsConfig) => textOf(await (await open(agents)).run("counter", inputOf("t", "r")));

  test.each<[string, AgentsConfig]>([
    ["a record", record],
    ["a record of functions", { counter: () => record["counter"] as AbstractAgent }],
    ["a record of asynchronous functions", { counter: async () => record["counter"] as AbstractAgent }],
    ["a promise", Promise.resolve(record)],
    ["a function", () => record],
    ["an asynchronous function", async () => record],
    ["a function of the request", ({ request }) => (request.url.includes("/agent/counter/run") ? record : {})],
    ["an asynchronous function of the request", async ({ request: _request }) => record],
  ])("are found in %s", async (_, agents) => {
    expect(await run(agents)).toBe("0 1 2 ");
  });

  test.each(["__proto__", "constructor", "toString", "hasOwnProperty"])("%s is none", async (agentId) => {
    const caller = await open(record);
    await expect(caller.run(agentId, inputOf("t", "r"))).rejects.toMatchObject({ status: 404 });
  });

  test("of a function without parameters are made once, at the first use, for all", async () => {
    const make = vi.fn(async () => record);
    const caller = await open(make);
    expect(make).not.toHaveBeenCalled();
    await Promise.all([caller.run("counter", inputOf("t1", "r")), caller.run("counter", inputOf("t2", "r"))]);
    expect(make).toHaveBeenCalledTimes(1);
  });

  test("of a function without parameters that failed are made anew", async () => {
    let calls = 0;
    const caller = await open(async () => {
      if (++calls === 1) throw new Error("not yet");
      return record;
    });
    await expect(caller.run("counter", inputOf("t", "r"))).rejects.toMatchObject({ status: 500 });
    expect(textOf(await caller.run("counter", inputOf("t", "r")))).toBe("0 1 2 ");
    expect(calls).toBe(2);
  });

  test("of a promise that failed are told to whoever asks", async () => {
    const caller = await open(Promise.reject(new Error("no agents")));
    await expect(caller.run("counter", inputOf("t", "r"))).rejects.toMatchObject({ status: 500 });
  });

  test("of a function of the request are made once for each request", async () => {
    const asked: (string | null)[] = [];
    const runtime = runtimeWith({
      agents: ({ request }) => {
        const user = request.headers.get("x-user");
        asked.push(user);
        return { counter: answering(() => `for ${user}`) };
      },
    });
    for (const user of ["ada", "bob"]) {
      const caller = await way.open(runtime, { "x-user": user });
      expect(textOf(await caller.run("counter", inputOf(user, "r")))).toBe(`for ${user}`);
    }
    expect(asked).toEqual(["ada", "bob"]);
  });

  test("that are no record are nobody's mistake but the runtime's", async () => {
    const caller = await open((() => [record]) as unknown as () => Agents);
    await expect(caller.run("counter", inputOf("t", "r"))).rejects.toMatchObject({ status: 500 });
  });

  test("that are loaded lazily are loaded once, and again where that failed", async () => {
    let calls = 0;
    const caller = await open({
      counter: async () => {
        if (++calls === 1) throw new Error("not yet");
        return record["counter"] as AbstractAgent;
      },
    });
    await expect(caller.run("counter", inputOf("t", "r0"))).rejects.toMatchObject({ status: 500 });
    await caller.run("counter", inputOf("t", "r1"));
    await caller.run("counter", inputOf("t", "r2"));
    expect(calls).toBe(2);
  });

  test("that turn out not to be cloneable are said to be", async () => {
    class Uncloneable extends AbstractAgent {
      override run(): Observable<BaseEvent> {
        throw new Error("not used");
      }
      override clone(): this {
        return this;
      }
    }
    const caller = await open({ counter: () => new Uncloneable() });
    const refused = await caller.run("counter", inputOf("t", "r")).catch((error: Error) => error);
    expect(String(refused)).toContain("agent-not-cloneable");
  });

  test("are clones: what one run does to its agent does not reach another", async () => {
    class Changing extends HeadersAgent {
      override run(input: Parameters<HeadersAgent["run"]>[0]): Observable<BaseEvent> {
        this.headers["of"] = input.runId;
        this.setState({ of: input.runId });
        return super.run(input);
      }
      override clone(): Changing {
        return super.clone() as Changing;
      }
    }
    const agent = new Changing({ own: "1" });
    const runtime = runtimeWith({ agents: { counter: agent } });
    for (const user of ["ada", "bob"]) {
      const caller = await way.open(runtime, { [`x-${user}`]: "here" });
      const told = textOf(await caller.run("counter", inputOf(user, user)));
      expect(JSON.parse(told)).toEqual({ own: "1", [`x-${user}`]: "here", of: user });
    }
    expect(agent).toMatchObject({ headers: { own: "1" }, state: {}, messages: [] });
  });
});

test("a record with an agent that cannot be cloned is refused when the runtime is made", () => {
  class Broken extends AbstractAgent {
    override run(): Observable<BaseEvent> {
      throw new Error("not used");
    }
    override clone(): never {
      throw new Error("no");
    }
  }
  expect(() => runtimeWith({ agents: { broken: new Broken() } })).toThrow(
    expect.objectContaining({ code: "agent-not-cloneable", details: { agentId: "broken" } }),
  );
});

test.each([null, [], "agents"])("%j are no agents", (agents) => {
  expect(() => runtimeWith({ agents: agents as unknown as Agents, dbName: freshDb() })).toThrow(
    expect.objectContaining({ code: "invalid-input", details: { field: "agents" } }),
  );
});

/** What a registration can hold by mistake, and what its owner has to hear. */
const MISTAKES: readonly [string, unknown, RegExp][] = [
  ["an export that is not there", undefined, /undefined: is the agent exported under this name\?.*then\(/],
  ["nothing", null, /null: is the agent exported/],
  ["a module", await import("./exporting.js"), /a module, not one of its exports \("poet", "run"\).*then\(/],
  ["a class", HeadersAgent, /the class "HeadersAgent": give an instance/],
  ["a generator", (async function* () {})(), /a generator: register defineAgent/],
  ["a function", () => record["counter"], /a function: return the agent/],
  ["any other object", { name: "poet" }, /an object without run\(\)/],
  ["text", "poet", /string/],
];

describe.each(WAYS)("an agent that is loaded, $name", (way) => {
  test.each(MISTAKES)("as %s is said to be that", async (_, given, message) => {
    const caller = await way.open(runtimeWith({ agents: { counter: (async () => given) as never } }));
    const refused = String(await caller.run("counter", inputOf("t", "r")).catch((error: Error) => error.message));
    expect(refused).toContain("invalid-agent");
    // Over HTTP it is JSON.
    expect(refused.replaceAll('\\"', '"')).toMatch(message);
    expect(refused.replaceAll('\\"', '"')).toContain('no agent: "counter" (The function that loads it returned ');
  });

  test("as nothing is loaded again at its next run", async () => {
    let calls = 0;
    const load = async () => (++calls === 1 ? undefined : record["counter"]) as AbstractAgent;
    const caller = await way.open(runtimeWith({ agents: { counter: load } }));
    await expect(caller.run("counter", inputOf("t", "r0"))).rejects.toMatchObject({ status: 500 });
    expect(textOf(await caller.run("counter", inputOf("t", "r")))).toBe("0 1 2 ");
  });
});

test.each([
  ...MISTAKES.filter(([what]) => what !== "a function"),
  ["a generator function", async function* () {}, /a generator: register defineAgent/] as const,
])("a record with %s for an agent is refused when the runtime is made", (_, given, message) => {
  const agents = { poet: given } as unknown as Agents;
  expect(() => runtimeWith({ agents })).toThrow(
    expect.objectContaining({ code: "invalid-agent", message: expect.stringMatching(message) }),
  );
});

test("/info tells of agents and loads none", async () => {
  const load = vi.fn(() => agentOf(counter(1)));
  const handler = createRuntimeHandler({ runtime: runtimeWith({ agents: { ...record, lazy: load } }) });
  const info = (await (await handler(new Request("http://localhost/info"))).json()) as { readonly agents: object };
  expect(info.agents).toMatchObject({ counter: { name: "counter" }, lazy: { name: "lazy" } });
  expect(load).not.toHaveBeenCalled();
});

const circular: unknown[] = [];
circular.push(circular);
const deep = (): unknown => {
  let value: unknown = {};
  for (let depth = 0; depth < 100_000; depth++) value = [value];
  return value;
};
test.each<[string, () => unknown]>([
  ["a circle", () => circular],
  ["what is nested too deep", deep],
  ["a function", () => () => 1],
  ["what fails as JSON", () => ({ toJSON: () => circular })],
  ["nothing for ever", () => new Promise(() => undefined)],
])("an agent that says %s of what it can do does not keep /info from telling of all", async (_, getCapabilities) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const odd = Object.assign(
    answering(() => "odd"),
    { getCapabilities },
  );
  const fine = Object.assign(
    answering(() => "fine"),
    { getCapabilities: () => ({ transport: { streaming: true } }) },
  );
  const runtime = runtimeWith({
    runner: new InMemoryAgentRunner({ store: "isolated" }),
    agents: { odd, fine } as Agents,
  });
  const asked = createRuntimeHandler({ runtime })(new Request("http://localhost/info"));
  await vi.advanceTimersByTimeAsync(10_000);
  const { agents } = (await (await asked).json()) as { readonly agents: unknown };
  const base = { description: "", className: expect.any(String) as unknown };
  expect(agents).toEqual({
    odd: { name: "odd", ...base },
    fine: { name: "fine", ...base, capabilities: { transport: { streaming: true } } },
  });
});

test("a tab is told which agents a record has, and of others nothing", async () => {
  const agentsOf = (agents: AgentsConfig) =>
    new Promise<unknown>((resolve) => {
      connectedTab(runtimeWith({ agents })).status$.subscribe((status) => {
        if (status.is === "connected") resolve(status.agents);
      });
    });
  expect(await agentsOf(record)).toEqual(["counter"]);
  expect(await agentsOf(({ request: _request }) => record)).toBeUndefined();
  expect(await agentsOf(Promise.resolve(record))).toBeUndefined();
});
