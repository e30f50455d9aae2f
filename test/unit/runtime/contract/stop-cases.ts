import { EventType } from "@ag-ui/core";
import { expectSame, expectThat } from "../../../../src/conformance/expect.js";
import { CLIENTS, Client } from "./clients.js";
import { idOf, WAITS, type Open } from "./contract-agents.js";
import { expectJson, expectRefusal, type ContractCase } from "./contract-bench.js";

const STOPPED = {
  stopped: true,
  interrupt: { type: "RUN_ERROR", message: "Run stopped by user", code: "STOPPED" },
};

const answers: readonly ContractCase[] = [
  ...(
    [
      ["without a body", () => undefined],
      ["that names nothing", () => ({})],
      ["that names the run", (runId: string) => ({ runId })],
    ] as const
  ).map(([what, bodyOf]): ContractCase => ({
    name: `a stop ${what} stops the live run, which is no error (L12)`,
    check: async (bench) => {
      const [threadId, runId] = [bench.id("t"), bench.id("run")];
      const { reader } = await bench.hold({ threadId, runId, props: { open: ["text"] } });
      expectSame(await expectJson(await bench.stop(threadId, bodyOf(runId))), STOPPED, "a stop must be answered");
      const end = (await bench.patience.within(reader.all(), "the end of a stopped run")).at(-1)!.event;
      expectSame(end.type, EventType.RUN_FINISHED, "a stopped run must not end as an error");
      await bench.expectFree(threadId);
      const text = (await bench.messages(threadId)).find(({ id }) => id === idOf(runId, "text"));
      expectSame(text?.["content"], "half a ", "what it had said must be kept");
    },
  })),
  {
    name: "a stop of a thread where nothing runs stops nothing",
    check: async (bench) => {
      const threadId = bench.id("t");
      const nothing = { stopped: false, message: `No active run for thread '${threadId}'.` };
      expectSame(await expectJson(await bench.stop(threadId)), nothing, "an unknown thread has nothing to stop");
      await bench.run("echo", { threadId });
      expectSame(await expectJson(await bench.stop(threadId)), nothing, "a run that is over must not be stopped");
    },
  },
  {
    name: "a stop of another run leaves the live one alone",
    check: async (bench) => {
      const [threadId, runId] = [bench.id("t"), bench.id("run")];
      const { reader, letOn } = await bench.hold({ threadId, runId });
      const answer = await expectJson(await bench.stop(threadId, { runId: "another" }));
      const message = `Run 'another' is not the active run for thread '${threadId}'.`;
      expectSame(answer, { stopped: false, message }, "only the run that is named must be stopped");
      await letOn();
      expectSame((await reader.all()).at(-1)?.event["outcome"], undefined, "the live run must not be stopped");
    },
  },
  {
    name: "a second stop stops nothing more",
    check: async (bench) => {
      const threadId = bench.id("t");
      const { reader } = await bench.hold({ threadId });
      await expectJson(await bench.stop(threadId));
      await bench.patience.within(reader.all(), "the end of a stopped run");
      const again = (await expectJson(await bench.stop(threadId))) as { readonly stopped: unknown };
      expectSame(again.stopped, false, "what is over must not be stopped again");
    },
  },
  {
    name: "an agent that does not hear of a stop is left behind (L7)",
    check: async (bench) => {
      const threadId = bench.id("t");
      const reader = await bench.start("stubborn", { threadId });
      expectSame(await expectJson(await bench.stop(threadId)), STOPPED, "a stop must be answered");
      const end = (await bench.patience.within(reader.all(), "the end of a stubborn run")).at(-1)!.event;
      expectSame(end.type, EventType.RUN_FINISHED, "it must end as stopped");
      await bench.expectFree(threadId);
    },
  },
  ...(
    [
      ["an unknown field", { runId: "r", more: 1 }, "Invalid stop request"],
      ["a list", [], "Invalid stop request"],
      ["a number", 1, "Invalid stop request"],
      ["a run id that is a number", { runId: 1 }, "Invalid runId"],
      ["an empty run id", { runId: "" }, "Invalid runId"],
      ["a run id of null", { runId: null }, "Invalid runId"],
    ] as const
  ).map(([what, body, error]): ContractCase => ({
    name: `a stop with ${what} is refused and stops nothing`,
    // An envelope's body must be an object.
    check: async (bench) => {
      const threadId = bench.id("t");
      const { reader, letOn } = await bench.hold({ threadId });
      await expectRefusal(await bench.stop(threadId, body), 400, { error });
      await letOn();
      expectSame((await reader.all()).at(-1)?.event["outcome"], undefined, "the live run must not be stopped");
    },
  })),
  {
    name: "a stop of no JSON is refused",
    needs: "routes",
    check: async (bench) => {
      const threadId = bench.id("t");
      await expectRefusal(await bench.post(`/agent/echo/stop/${threadId}`, "{"), 400, {
        error: "Invalid stop request",
      });
      const headers = { "Content-Type": "text/plain" };
      const plain = await bench.way.request(`/agent/echo/stop/${threadId}`, { method: "POST", headers, body: "{}" });
      await expectRefusal(plain, 415);
    },
  },
  {
    name: "a stop of an unknown agent's run is refused",
    check: async (bench) => {
      const threadId = bench.id("t");
      const { reader, letOn } = await bench.hold({ threadId });
      await expectRefusal(await bench.stop(threadId, {}, "nobody"), 404, { error: "Agent not found" });
      await letOn();
      await reader.all();
    },
  },
];

/** What is open when a run is stopped. Subagents came with AG-UI 1.0. */
const OPEN: readonly (readonly Open[])[] = [
  [],
  ["text"],
  ["call"],
  ["step"],
  ["reasoning"],
  ["activity"],
  ["subagent"],
  ["text", "call", "step", "reasoning", "activity"],
];

const clients: readonly ContractCase[] = CLIENTS.flatMap((version) =>
  OPEN.map((open): ContractCase => ({
    name: `a stop with open [${open.join(", ")}] is no failure for @ag-ui/client ${version} (L12)`,
    check: async (bench) => {
      const [threadId, runId, gate] = [bench.id("t"), bench.id("run"), bench.id("gate")];
      const client = new Client(version, bench.way, "/agent/holder/run", { threadId });
      client.say(`${runId}-user`, "go");
      const running = client.run({ runId, forwardedProps: { open, gate } });
      await bench.patience.within(client.told(`CUSTOM ${WAITS}`), "the client's wait");
      expectSame(await expectJson(await bench.stop(threadId, { runId })), STOPPED, "a stop must be answered");
      await bench.patience.within(running, "runAgent of a stopped run");
      client.expectNoFailure();
      expectSame(client.types.at(-1), EventType.RUN_FINISHED, "it must be told of the end");
      const { messages } = client.view;
      expectSame(messages[0]?.id, `${runId}-user`, "the user's message must be kept");
      if (open.includes("text")) {
        const text = messages.find(({ id }) => id === idOf(runId, "text"));
        expectSame(text?.content, "half a ", "what was said must be kept");
      }
      if (open.includes("call")) {
        const called = messages.some((message) => "toolCalls" in message && message.toolCalls?.length === 1);
        expectThat(called, "the call must be kept");
      }
      client.say(`${runId}-after`, "and on");
      const next = new Client(version, bench.way, "/agent/echo/run", { threadId, messages });
      await bench.patience.within(next.run(), "the next run");
      next.expectNoFailure();
    },
  })),
);

export const STOP_CASES: readonly ContractCase[] = [...answers, ...clients];
