import { EventType } from "@ag-ui/core";
import { expectSame, expectThat } from "../../../../src/conformance/expect.js";
import { expectJson, waits, type Asked, type ContractBench, type ContractCase } from "./contract-bench.js";
import { EventReader, typesOf } from "./reading.js";

/** How CopilotKit's suggestion engine asks, where it does not know of the route. */
const CHOICE = { toolChoice: { type: "function", function: { name: "copilotkitSuggest" } } };

/** Both ways to ask for suggestions. */
const WAYS: readonly (readonly [string, (bench: ContractBench, agentId: string, asked: Asked) => Promise<Response>])[] =
  [
    ["/suggest", (bench, agentId, asked) => bench.ask("suggest", agentId, asked)],
    [
      "/run with the tool choice copilotkitSuggest",
      (bench, agentId, { props, ...asked }) =>
        bench.ask("run", agentId, { ...asked, props: { ...props, ...CHOICE } as typeof props & object }),
    ],
  ];

async function expectNoTrace(bench: ContractBench, threadId: string): Promise<void> {
  const path = `/threads/${threadId}`;
  expectSame(await expectJson(await bench.get(`${path}/messages`)), { messages: [] }, "no messages must be kept");
  expectSame(await expectJson(await bench.get(`${path}/events`)), { events: [] }, "no events must be kept");
  expectSame(await expectJson(await bench.get(`${path}/state`)), { state: null }, "no state must be kept");
  expectSame(await bench.history(threadId), [], "connect must find nothing");
  const { threads } = (await expectJson(await bench.get("/threads?limit=500"))) as { threads: { id: string }[] };
  expectThat(!threads.some(({ id }) => id === threadId), "the list of threads must not have it");
}

export const SUGGESTION_CASES: readonly ContractCase[] = WAYS.flatMap(([way, suggest]): readonly ContractCase[] => [
  {
    name: `${way} answers with a whole run that leaves no trace`,
    check: async (bench) => {
      const threadId = bench.id("t");
      const events = await new EventReader(await suggest(bench, "suggester", { threadId })).all();
      expectSame(
        typesOf(events),
        ["RUN_STARTED", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "RUN_FINISHED"],
        "what the agent says must be handed out",
      );
      await expectNoTrace(bench, threadId);
    },
  },
  {
    name: `${way} runs beside a live run of its thread and adds nothing to it`,
    check: async (bench) => {
      const [threadId, runId] = [bench.id("t"), bench.id("run")];
      const { reader, letOn } = await bench.hold({ threadId, runId, props: { open: ["text"] } });
      const events = await new EventReader(await suggest(bench, "suggester", { threadId })).all();
      expectSame(events.at(-1)?.event.type, EventType.RUN_FINISHED, "a suggestion must not wait for the thread");
      expectSame(await bench.progress(runId), "started", "the live run must go on");
      await letOn();
      await reader.all();
      const roles = (await bench.messages(threadId)).map(({ role }) => role);
      expectSame(roles, ["user", "assistant"], "the thread must have its own run alone");
    },
  },
  {
    name: `${way} ends when its reader leaves`,
    check: async (bench) => {
      const [threadId, runId, gate] = [bench.id("t"), bench.id("run"), bench.id("gate")];
      const reader = new EventReader(await suggest(bench, "holder", { threadId, runId, props: { gate } }));
      await bench.patience.within(reader.until(waits, "it waits"), "a suggestion that waits");
      await reader.leave();
      await bench.patience.until(
        async () => (await bench.progress(runId)) === "aborted",
        "the end of a suggestion that nobody reads",
      );
      await expectNoTrace(bench, threadId);
    },
  },
  ...[true, false].map((isNamed): ContractCase => ({
    name: `${way} can be stopped ${isNamed ? "by its run" : "with all that runs in its thread"}, which is no error`,
    check: async (bench) => {
      const [threadId, runId, gate] = [bench.id("t"), bench.id("run"), bench.id("gate")];
      const reader = new EventReader(await suggest(bench, "holder", { threadId, runId, props: { gate } }));
      await bench.patience.within(reader.until(waits, "it waits"), "a suggestion that waits");
      const answer = (await expectJson(await bench.stop(threadId, isNamed ? { runId } : {}))) as { stopped: unknown };
      expectSame(answer.stopped, true, "a suggestion must be stopped");
      const end = (await bench.patience.within(reader.all(), "the end of a stopped suggestion")).at(-1)?.event;
      expectSame(end?.type, EventType.RUN_FINISHED, "a stopped suggestion must not end as an error");
    },
  })),
  {
    name: `${way} is not in the way of a stop that names no run`,
    check: async (bench) => {
      const [threadId, runId, gate] = [bench.id("t"), bench.id("run"), bench.id("gate")];
      const { reader } = await bench.hold({ threadId, runId });
      const suggestion = new EventReader(await suggest(bench, "holder", { threadId, props: { gate } }));
      await bench.patience.within(suggestion.until(waits, "it waits"), "a suggestion that waits");
      await expectJson(await bench.stop(threadId));
      await bench.patience.within(reader.all(), "the end of the thread's own run");
      expectSame(await bench.progress(runId), "aborted", "the thread's own run must be stopped");
      await bench.open(gate);
      await bench.patience.within(suggestion.all(), "the end of the suggestion");
    },
  },
]);
