import type { IncomingMessage, ServerResponse } from "node:http";
import { EventType, type BaseEvent, type Message, type RunAgentInput } from "@ag-ui/client";
import type { ConnectRuntimeOptions } from "ag-ui-local-runtime/client";
import { describe, expect, onTestFinished, test } from "vitest";
import { serveOnLoopback } from "../../../../test/unit/runtime/integrations/mcp-server.js";
import { hostOf, network, shown, until } from "../../../../test/unit/waiting/kit.js";
import { remote } from "../../../recipes/http-agent.js";

type Answer = (res: ServerResponse, input: RunAgentInput) => void;

const sends = (res: ServerResponse, events: readonly object[]): void => {
  if (!res.headersSent) res.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events) res.write(`data: ${JSON.stringify(event)}\n\n`);
};
const begins = (res: ServerResponse, { threadId, runId }: RunAgentInput, delta: string): void =>
  sends(res, [
    { type: EventType.RUN_STARTED, threadId, runId },
    { type: EventType.TEXT_MESSAGE_START, messageId: `${runId}-a`, role: "assistant" },
    { type: EventType.TEXT_MESSAGE_CONTENT, messageId: `${runId}-a`, delta },
  ] satisfies BaseEvent[]);

const answers: Answer = (res, input) => {
  const { threadId, runId } = input;
  begins(res, input, "the answer");
  sends(res, [{ type: EventType.TEXT_MESSAGE_END, messageId: `${runId}-a` }]);
  sends(res, [{ type: EventType.RUN_FINISHED, threadId, runId }]);
  res.end();
};
const breaksOff: Answer = (res, input) => {
  begins(res, input, "the ans");
  res.end();
};
const refuses =
  (status: number, headers: Record<string, string> = {}): Answer =>
  (res) =>
    void res.writeHead(status, headers).end("no");

/** The recipe's worker and a tab on it, over a server that answers as told; the last answer is given again and again. */
async function served(...script: Answer[]) {
  const arrived: { readonly headers: IncomingMessage["headers"]; readonly messages: readonly Message[] }[] = [];
  const server = await serveOnLoopback(async (req, res) => {
    let body = "";
    for await (const part of req) body += String(part);
    const input = JSON.parse(body) as RunAgentInput;
    arrived.push({ headers: req.headers, messages: input.messages });
    (script.length > 1 ? script.shift()! : script[0]!)(res, input);
  });
  onTestFinished(() => server.close());
  const online = network();
  const { connect } = hostOf({ ...remote("support", server.origin), network: online });
  let calls = 0;
  const headers = (() => ({
    authorization: `Bearer ${++calls}`,
    "x-other": "stays",
  })) satisfies ConnectRuntimeOptions["headers"];
  const runtime = connect({ headers });
  const agent = runtime.agent("support", { threadId: "t" });
  agent.follow();
  const ask = (): Promise<unknown> => {
    agent.addMessage({ id: "u", role: "user", content: "help" });
    return agent.runAgent({ runId: "r", whenOffline: "wait" });
  };
  const texts = (): unknown[] => agent.messages.map(({ content }) => content);
  /** How its first run ended. */
  const end = async () => (await runtime.runner().getRunEvents("r")).at(-1)!.event;
  return { arrived, server, end, online, runtime, ask, texts };
}

describe("an agent of an AG-UI server elsewhere", () => {
  test("is sent what the page's call says who asks, and nothing else of its headers", async () => {
    const { arrived, ask, texts } = await served(answers);
    await ask();
    expect(texts()).toEqual(["help", "the answer"]);
    expect(arrived).toHaveLength(1);
    expect(arrived[0]!.headers).toMatchObject({ authorization: expect.stringMatching(/^Bearer \d+$/) });
    expect(arrived[0]!.headers).not.toHaveProperty("x-other");
  });

  test("is asked when there is a network again", async () => {
    const { arrived, online, runtime, ask, texts } = await served(answers);
    online.set(false);
    const asking = ask();
    await until(async () => expect(shown(await runtime.waiting.list("t"))).toEqual(["r offline"]));
    expect(arrived).toEqual([]);
    online.set(true);
    await asking;
    await until(() => expect(texts()).toEqual(["help", "the answer"]));
  });

  test("is asked again where its answer broke off: the reader sees one answer", async () => {
    const { arrived, runtime, ask, texts } = await served(breaksOff, answers);
    await ask().catch(() => undefined);
    await runtime.waiting.retry("t", "r~2");
    await until(() => expect(texts()).toEqual(["help", "the answer"]));
    expect(arrived.map(({ messages }) => messages.map(({ content }) => content))).toEqual([["help"], ["help"]]);
    expect(arrived[1]!.headers.authorization).toMatch(/^Bearer \d+$/);
  });

  test.each([
    ["RATE_LIMITED", refuses(429, { "retry-after": "3600" }), 3_600_000],
    ["PROVIDER_UNAVAILABLE", refuses(503), 1_000],
  ])("is asked again where it may answer later, when it says so: %s", async (code, refusal, afterMs) => {
    const { arrived, runtime, ask, end, texts } = await served(refusal, answers);
    await ask().catch(() => undefined);
    expect(await end()).toMatchObject({ type: EventType.RUN_ERROR, code });
    if (afterMs > 1_000) {
      const at = (await runtime.runner().getRun("r", { threadId: "t" }))!.endedAt! + afterMs;
      await until(async () =>
        expect(await runtime.waiting.list("t")).toMatchObject([{ runId: "r~2", reason: { is: "retry", at } }]),
      );
      expect(arrived).toHaveLength(1);
      await runtime.waiting.retry("t", "r~2");
    }
    await until(() => expect(texts()).toEqual(["help", "the answer"]));
    expect(arrived).toHaveLength(2);
  });

  test("that is not there fails in a way that may pass; one that knows nobody fails for good", async () => {
    const gone = await served(answers);
    await gone.server.close();
    await gone.ask().catch(() => undefined);
    expect(await gone.end()).toMatchObject({ code: "PROVIDER_UNAVAILABLE" });
    const strict = await served(refuses(401));
    await strict.ask().catch(() => undefined);
    expect(await strict.end()).toMatchObject({ code: "AGENT_FAILED" });
    expect(await strict.runtime.waiting.list("t")).toEqual([]);
  });
});
