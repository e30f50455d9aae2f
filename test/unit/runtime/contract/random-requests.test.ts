import { getEventListeners } from "node:events";
import fc from "fast-check";
import { InMemoryAgentRunner } from "ag-ui-local-runtime";
import { createRuntimeHandler, type AgentRuntime, type HandlerMode } from "ag-ui-local-runtime/runtime";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { times } from "../../property.js";
import { quietly } from "./clients.js";
import { ContractBench, refusalOf, waits } from "./contract-bench.js";
import { contractRuntime, handlerWay } from "./in-process.js";
import { drawnEnvelope, drawnRequest, type DrawnBody, type DrawnRequest } from "./random-requests.js";
import { EventReader } from "./reading.js";

const BASE = "http://localhost/base";

/** Rejections that nobody took. */
const unhandled: unknown[] = [];
const note = (reason: unknown): void => void unhandled.push(reason);
beforeAll(() => void process.on("unhandledRejection", note));
afterAll(() => void process.off("unhandledRejection", note));

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function sentBody({ text, broken, sent }: DrawnBody): BodyInit {
  const utf8 = new TextEncoder().encode(text);
  const bytes = broken ? new Uint8Array([...utf8, 0xff, 0xfe]) : utf8;
  if (sent === "whole") return bytes;
  const half = bytes.length >> 1;
  const pieces = [bytes.slice(0, half), bytes.slice(half)];
  return new ReadableStream({
    async pull(controller) {
      await turn();
      const piece = pieces.shift();
      if (piece === undefined) return controller.close();
      if (sent === "errors" && pieces.length === 0) return controller.error(new Error("gone"));
      if (piece.length > 0) controller.enqueue(piece);
      else await this.pull?.(controller);
    },
  });
}

/** A request, and the signal that its handler sees. Undefined: it is none that a server could be sent. */
function requestOf(drawn: DrawnRequest, sender: AbortController): Request | undefined {
  const { method, path, headers, body } = drawn;
  const hasBody = body !== undefined && method !== "GET" && method !== "HEAD";
  try {
    // Needed for streams; the DOM's types do not know it. https://fetch.spec.whatwg.org/#dom-requestinit-duplex
    const init = { method, headers, duplex: "half", ...(hasBody && { body: sentBody(body) }) };
    const request = new Request(`${BASE}${path}`, init as RequestInit);
    // Its own, not one that follows: what listens to it is what the runtime left there.
    Object.defineProperty(request, "signal", { value: sender.signal });
    return request;
  } catch {
    return undefined;
  }
}

/** Reads an answer as far as its sender does. */
async function readAnswer(answer: Response, { method, leaves }: DrawnRequest): Promise<void> {
  const { status, headers, body } = answer;
  expect(status).toBeLessThan(500);
  if (method === "HEAD" || body === null) return;
  if (status >= 400) return void (await refusalOf(answer));
  const type = headers.get("Content-Type");
  if (type === "application/json") return void (await answer.json());
  if (type !== "text/event-stream") return void (await body.cancel());
  const reader = new EventReader(answer);
  for (let read = 0; ; read++) {
    if (leaves?.at === "events" && read >= leaves.after) return reader.leave();
    const next = await reader.next();
    if (next === undefined) return;
    // Nobody lets it on.
    if (waits(next)) return reader.leave();
  }
}

async function runOf(runtime: AgentRuntime): Promise<string | undefined> {
  const bench = new ContractBench(handlerWay(runtime));
  return (await bench.run("echo", { threadId: bench.id("after") })).at(-1)?.event.type;
}

const hosts = (): AgentRuntime =>
  contractRuntime({ runner: new InMemoryAgentRunner({ store: "isolated", stopGraceMs: 20 }) });

describe.each([
  ["multi-route", drawnRequest],
  ["single-route", drawnEnvelope],
] as const)("whatever is sent to a runtime (%s)", (mode: HandlerMode, drawn) => {
  test("it answers, says no to what is wrong, and goes on", async () => {
    const runtime = hosts();
    onTestFinished(() => runtime.close());
    const handler = createRuntimeHandler({ runtime, basePath: "/base", mode });
    const before = unhandled.length;

    await quietly(() =>
      fc.assert(
        fc.asyncProperty(fc.array(drawn, { minLength: 1, maxLength: 4 }), async (requests) => {
          const signals = await Promise.all(
            requests.map(async (one) => {
              const sender = new AbortController();
              const request = requestOf(one, sender);
              if (request === undefined) return undefined;
              if (one.leaves?.at === "start") sender.abort();
              const leaving = (async () => {
                if (one.leaves?.at !== "turns") return;
                for (let n = 0; n < one.leaves.after; n++) await turn();
                sender.abort();
              })();
              const answer = await handler(request);
              expect(answer).toBeInstanceOf(Response);
              if (one.isWrong) expect(answer.status, JSON.stringify(one)).toBeGreaterThanOrEqual(400);
              await readAnswer(answer, one);
              await leaving;
              return sender.signal;
            }),
          );
          const cleared = await handlerWay(runtime).request("/threads/clear", { method: "POST" });
          expect(cleared.status).toBe(204);
          for (const signal of signals) {
            // A request in an envelope follows the one that it came in.
            const left = signal === undefined ? 0 : getEventListeners(signal, "abort").length;
            expect(left).toBeLessThanOrEqual(mode === "single-route" ? 1 : 0);
          }
          await expect.poll(async () => (await runtime.health()) as object).toMatchObject({ liveThreads: 0 });
          expect(({} as { readonly polluted?: unknown }).polluted).toBeUndefined();
        }),
        times(250),
      ),
    );
    await turn();
    expect(unhandled.slice(before)).toEqual([]);
    expect(await runOf(runtime)).toBe("RUN_FINISHED");
  });
});
