import { InMemoryAgentRunner } from "ag-ui-local-runtime";
import { describe, expect, onTestFinished, test } from "vitest";
import type { RuntimeHandlerOptions } from "ag-ui-local-runtime/runtime";
import { ContractBench } from "./contract-bench.js";
import { contractRuntime, handlerWay } from "./in-process.js";
import { EventReader } from "./reading.js";

const PAGE = "https://page.example";

/** `fetch` of a page may not say where it comes from, so these ask the handler itself. */
function benchOf(cors: RuntimeHandlerOptions["cors"], mode?: RuntimeHandlerOptions["mode"]): ContractBench {
  const runner = new InMemoryAgentRunner({ store: "isolated", stopGraceMs: 50 });
  const way = handlerWay(contractRuntime({ runner }), {
    ...(cors !== undefined && { cors }),
    ...(mode !== undefined && { mode }),
  });
  onTestFinished(() => way.close());
  return new ContractBench(way);
}

const ORIGIN = { headers: { Origin: PAGE } };

/** Answers of each kind: of JSON, a stream, a refusal, an unknown path. */
async function answers(bench: ContractBench): Promise<readonly Response[]> {
  const run = await bench.ask("run", "echo", { threadId: "t", ...ORIGIN });
  return [
    await bench.get("/info", ORIGIN),
    await bench.ask("run", "nobody", { threadId: "t", ...ORIGIN }),
    await bench.get("/threads?limit=x", ORIGIN),
    run,
  ];
}

describe("a page of another origin", () => {
  test("is told nothing where nothing was allowed", async () => {
    for (const answer of await answers(benchOf(undefined))) {
      expect([...answer.headers.keys()].filter((name) => name.startsWith("access-control-"))).toEqual([]);
    }
  });

  test("has no leave to ask where nothing was allowed", async () => {
    const answer = await benchOf(false).way.request("/info", { method: "OPTIONS", ...ORIGIN });
    expect(answer.status).toBe(405);
  });

  test.each([undefined, "single-route"] as const)("reads each answer where all may (mode %s)", async (mode) => {
    for (const answer of await answers(benchOf(true, mode))) {
      expect(answer.headers.get("Access-Control-Allow-Origin")).toBe("*");
    }
  });

  test("reads each answer where its origin may, with its cookies", async () => {
    for (const answer of await answers(benchOf({ origin: [PAGE], credentials: true }))) {
      expect(answer.headers.get("Access-Control-Allow-Origin")).toBe(PAGE);
      expect(answer.headers.get("Access-Control-Allow-Credentials")).toBe("true");
      expect(answer.headers.get("Vary")).toContain("Origin");
    }
  });

  test("reads nothing where another origin may", async () => {
    for (const answer of await answers(benchOf({ origin: "https://other.example" }))) {
      expect(answer.headers.get("Access-Control-Allow-Origin")).toBeNull();
    }
  });

  test("gets a stream whole where it may read it", async () => {
    const events = await new EventReader(await benchOf(true).ask("run", "rich", { threadId: "t", ...ORIGIN })).all();
    expect(events.at(-1)?.event.type).toBe("RUN_FINISHED");
  });

  test.each(["/info", "/agent/echo/run", "/threads/t", "/nothing"])("is told before a request to %s", async (path) => {
    const headers = {
      Origin: PAGE,
      "Access-Control-Request-Method": "PATCH",
      "Access-Control-Request-Headers": "content-type, last-event-id",
    };
    const answer = await benchOf(true).way.request(path, { method: "OPTIONS", headers });
    expect(answer.status).toBe(204);
    expect(answer.headers.get("Access-Control-Allow-Methods")).toContain("PATCH");
    expect(answer.headers.get("Access-Control-Allow-Headers")).toBe("content-type, last-event-id");
  });

  test.each(["text/plain", undefined])("starts no run with a body of %s, which needs no leave", async (type) => {
    const bench = benchOf(true);
    const headers = {
      ...ORIGIN.headers,
      "Sec-Fetch-Site": "cross-site",
      ...(type !== undefined && { "Content-Type": type }),
    };
    const body = new TextEncoder().encode(JSON.stringify(bench.inputOf({ threadId: "t" })));
    const answer = await bench.way.request("/agent/echo/run", { method: "POST", headers, body });
    expect(answer.status).toBe(415);
    expect(await bench.messages("t")).toEqual([]);
  });
});
