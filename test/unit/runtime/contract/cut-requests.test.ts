import { connect } from "node:net";
import { InMemoryAgentRunner } from "ag-ui-local-runtime";
import { expect, onTestFinished, test } from "vitest";
import { ContractBench } from "./contract-bench.js";
import { httpWay } from "./http-ways.js";
import { contractRuntime } from "./in-process.js";

/** Sends so much, and is gone when it is sent. */
function sendAndGo(url: URL, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(url.port), url.hostname, () => {
      socket.write(bytes, () => socket.resetAndDestroy());
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      // It may be faster than the end of this side.
      if (error.code !== "ECONNRESET" && error.code !== "EPIPE") reject(error);
    });
    socket.on("close", () => resolve());
  });
}

test("a request that ends anywhere leaves nothing behind, and one that came whole runs (L7, L11)", async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  const runner = new InMemoryAgentRunner({ store: "isolated", stopGraceMs: 50 });
  const runtime = contractRuntime({ runner });
  const way = await httpWay(runtime);
  onTestFinished(async () => {
    process.off("unhandledRejection", note);
    await way.close();
  });
  const bench = new ContractBench(way);
  const url = new URL(way.url("/agent/echo/run"));
  const body = JSON.stringify(bench.inputOf({ threadId: "cut", runId: "r" }));
  const head = `POST ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nContent-Type: application/json\r\n`;
  const request = new TextEncoder().encode(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);

  for (let length = 1; length < request.length; length += 7) await sendAndGo(url, request.slice(0, length));
  expect(await bench.messages("cut")).toEqual([]);

  // The reader is gone before it has a word: the run is there all the same, or was never asked for.
  await sendAndGo(url, request);
  const next = async (): Promise<number> => {
    const answer = await bench.ask("run", "echo", { threadId: "cut" });
    await answer.text();
    return answer.status;
  };
  await expect.poll(next).toBe(200);
  await expect.poll(() => runtime.health()).toMatchObject({ status: "ok", liveThreads: 0 });
  expect(unhandled).toEqual([]);
});
