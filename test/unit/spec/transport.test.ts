import { createServer } from "node:http";
import { HttpAgent, type RunAgentInput } from "@ag-ui/client";
import { describe, expect, test } from "vitest";
import { listening } from "../runtime/node-kit.js";
import { collect, inputOf, makeRunner } from "../runner/kit.js";

const text = (events: readonly object[], end = "\n", joint = "\n\n"): string =>
  events.map((event) => `data: ${JSON.stringify(event)}`).join(joint.replaceAll("\n", end)) +
  joint.replaceAll("\n", end);

const run = (threadId: string, runId: string, delta = "grüße 😀"): object[] => [
  { type: "RUN_STARTED", threadId, runId },
  { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant" },
  { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta },
  { type: "TEXT_MESSAGE_END", messageId: "m" },
  { type: "RUN_FINISHED", threadId, runId },
];

/** Runs an agent whose server answers with these bytes; what the thread then is. */
async function ranOn(
  answer: (input: RunAgentInput) => readonly Uint8Array[],
  status = 200,
  type = "text/event-stream",
) {
  const { url } = await listening(
    createServer((req, res) => {
      let body = "";
      req.on("data", (piece) => (body += String(piece)));
      req.on("end", () => {
        res.writeHead(status, { "content-type": type });
        for (const bytes of answer(JSON.parse(body) as RunAgentInput)) res.write(bytes);
        res.end();
      });
    }),
  );
  const runner = makeRunner();
  const events = await collect(runner.run({ threadId: "t", agent: new HttpAgent({ url }), input: inputOf("t", "r") }));
  const [first] = await runner.listRuns("t");
  const messages = await runner.getThreadMessages("t");
  return { status: first!.status, code: events.at(-1)!["code"], said: messages.at(-1)!.content };
}

const bytes = (said: string): Uint8Array => new TextEncoder().encode(said);
const finished = { status: "finished", code: undefined, said: "grüße 😀" };

describe("frames as they come", () => {
  test.each<[string, (input: RunAgentInput) => readonly Uint8Array[]]>([
    ["as the specification has them", ({ threadId, runId }) => [bytes(text(run(threadId, runId)))]],
    ["byte by byte", ({ threadId, runId }) => [...bytes(text(run(threadId, runId)))].map((one) => Uint8Array.of(one))],
    [
      "with comments between them",
      ({ threadId, runId }) => [bytes(`: hello\n\n${text(run(threadId, runId), "\n", "\n\n: still here\n\n")}`)],
    ],
    [
      "with other fields",
      ({ threadId, runId }) => [
        bytes(
          run(threadId, runId)
            .map((event, n) => `event: message\nid: ${n}\nretry: 10\ndata: ${JSON.stringify(event)}\n\n`)
            .join(""),
        ),
      ],
    ],
    [
      "with data on several lines",
      ({ threadId, runId }) => [
        bytes(
          run(threadId, runId)
            .map((event) => `data: ${JSON.stringify(event, null, 1).replaceAll("\n", "\ndata: ")}\n\n`)
            .join(""),
        ),
      ],
    ],
  ])("%s", async (_, answer) => {
    expect(await ranOn(answer)).toEqual(finished);
  });
});

describe("an answer that is no stream", () => {
  test("200 with an empty body", async () => {
    expect(await ranOn(() => [])).toMatchObject({ status: "errored", code: "INCOMPLETE_STREAM" });
  });

  test("200 with a page of HTML", async () => {
    const page = "<!doctype html><title>Sign in</title><p>Please sign in.</p>";
    expect(await ranOn(() => [bytes(page)], 200, "text/html")).toMatchObject({ status: "errored" });
  });

  test("a status that says no", async () => {
    expect(await ranOn(() => [bytes("{}")], 503, "application/json")).toMatchObject({ status: "errored" });
  });

  test("a frame that is no JSON", async () => {
    const broken = ({ threadId, runId }: RunAgentInput): readonly Uint8Array[] => [
      bytes(text(run(threadId, runId).slice(0, 3))),
      bytes("data: {broken\n\n"),
    ];
    expect(await ranOn(broken)).toMatchObject({ status: "errored", said: "grüße 😀" });
  });

  test("a connection that breaks in the middle of a frame", async () => {
    const cut = ({ threadId, runId }: RunAgentInput): readonly Uint8Array[] => [
      bytes(text(run(threadId, runId)).slice(0, -40)),
    ];
    expect(await ranOn(cut)).toMatchObject({ status: "errored", said: "grüße 😀" });
  });
});
