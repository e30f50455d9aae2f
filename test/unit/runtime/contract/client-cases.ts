import { EventType } from "@ag-ui/core";
import type { Message } from "@ag-ui/client";
import { expectSame, expectThat } from "../../../../src/conformance/expect.js";
import { CLIENTS, Client, type ClientVersion, type ClientView } from "./clients.js";
import { idOf, interruptOf, WAITS } from "./contract-agents.js";
import type { ContractBench, ContractCase } from "./contract-bench.js";

/** The messages of a rich run, as each reader rebuilds them. */
const richMessages = (runId: string): readonly Message[] => [
  { id: idOf(runId, "thought"), role: "reasoning", content: "let me see" },
  {
    id: idOf(runId, "text"),
    role: "assistant",
    content: "I look it up: 👋 “\u2028”",
    toolCalls: [{ id: idOf(runId, "call"), type: "function", function: { name: "look", arguments: '{"at":"here"}' } }],
  },
  { id: idOf(runId, "result"), role: "tool", toolCallId: idOf(runId, "call"), content: "found" },
  { id: idOf(runId, "activity"), role: "activity", activityType: "plan", content: { done: ["look"] } },
  { id: idOf(runId, "end"), role: "assistant", content: "That is it." },
];

/** What a client that has nothing rebuilds from connect. */
async function connected(bench: ContractBench, version: ClientVersion, threadId: string): Promise<ClientView> {
  const reader = new Client(version, bench.way, "/agent/echo/connect", { threadId });
  await bench.patience.within(reader.run(), "the end of a connect");
  reader.expectNoFailure();
  return reader.view;
}

/** Lists of messages, whatever order they came in: activities have none of their own. */
const sorted = (messages: readonly Message[]): readonly Message[] =>
  messages.toSorted((a, b) => (a.id < b.id ? -1 : 1));

export const CLIENT_CASES: readonly ContractCase[] = [
  ...CLIENTS.flatMap((version): readonly ContractCase[] => [
    {
      name: `a rich run leads @ag-ui/client ${version} to its messages and state`,
      check: async (bench) => {
        const [threadId, runId] = [bench.id("t"), bench.id("run")];
        const client = new Client(version, bench.way, "/agent/rich/run", { threadId });
        client.say(`${runId}-user`, "go");
        await bench.patience.within(client.run({ runId }), "the end of a rich run");
        client.expectNoFailure();
        const user = { id: `${runId}-user`, role: "user", content: "go" };
        expectSame(client.view.messages, [user, ...richMessages(runId)], "the messages must be those of the run");
        expectSame(client.view.state, { count: 2, seen: ["a", "b"] }, "the state must be that of the run");
        expectThat(client.types.includes("CUSTOM note"), "custom events must be told");
      },
    },
    {
      name: `connect leads @ag-ui/client ${version} to what the run itself led to (L2)`,
      check: async (bench) => {
        const [threadId, runId] = [bench.id("t"), bench.id("run")];
        const client = new Client(version, bench.way, "/agent/rich/run", { threadId });
        client.say(`${runId}-user`, "go");
        await bench.patience.within(client.run({ runId }), "the end of a rich run");
        const { messages, state } = await connected(bench, version, threadId);
        expectSame(sorted(messages), sorted(client.view.messages), "connect must rebuild the messages");
        expectSame(state, client.view.state, "connect must rebuild the state");
      },
    },
    {
      name: `connect tells @ag-ui/client ${version} which run each message is of, and shows all as the log has them`,
      check: async (bench) => {
        const threadId = bench.id("t");
        const [first, stopped, last, live, edit] = ["run", "run", "run", "run", "run"].map((kind) =>
          bench.id(kind),
        ) as [string, string, string, string, string]; // as many as there are names
        await bench.run("rich", { threadId, runId: first });
        const { reader: held } = await bench.hold({ threadId, runId: stopped, props: { open: ["text"] } });
        await bench.stop(threadId);
        await bench.patience.within(held.all(), "the end of a stopped run");
        await bench.run("rich", { threadId, runId: last });

        const read = async (): Promise<Client> => {
          const reader = new Client(version, bench.way, "/agent/echo/connect", { threadId });
          await bench.patience.within(reader.run(), "the end of a connect");
          return reader;
        };
        const expectNamed = async (reader: Client, runIds: readonly string[]): Promise<void> => {
          reader.expectNoFailure();
          const ids = reader.view.messages.map(({ id }) => id);
          const named = ids.map((id) => reader.runOf.get(id));
          const own = ids.map((id) => runIds.find((runId) => id.startsWith(`${runId}-`)));
          expectSame(named, own, "each message must be of the run that added it");
          expectSame(
            ids,
            (await bench.messages(threadId)).map(({ id }) => id),
            "messages must be in their order",
          );
        };
        const settled = await read();
        await expectNamed(settled, [first, stopped, last]);
        expectSame(
          settled.view.messages.slice(1, 6),
          richMessages(first),
          "nothing of the names may be left in the messages",
        );
        const again = new Client(version, bench.way, "/agent/echo/connect", {
          threadId,
          messages: settled.view.messages.slice(0, 2),
        });
        await bench.patience.within(again.run(), "the end of a connect");
        expectSame(again.view.messages, settled.view.messages, "who holds messages must be led to the same");

        const { letOn } = await bench.hold({ threadId, runId: live, props: { open: ["text"] } });
        const during = new Client(version, bench.way, "/agent/echo/connect", { threadId });
        const reading = during.run();
        await bench.patience.within(during.told(`CUSTOM ${WAITS}`), "the live run");
        await letOn();
        await bench.patience.within(reading, "the end of a live run");
        await expectNamed(during, [first, stopped, last, live]);

        // What a person edits is said in another run.
        const messages = [{ id: `${last}-user`, role: "user" as const, content: "edited" }];
        await bench.run("echo", { threadId, runId: edit, input: { messages } });
        const edited = await read();
        expectSame(edited.runOf.get(`${last}-user`), edit, "an edited message is of the run that it was sent with");
        expectSame(edited.runOf.get(`${first}-user`), first, "those before it stay of theirs");
        expectSame(edited.runOf.get(`${edit}-answer`), edit, "its answer is of the same run");
      },
    },
    {
      name: `an interrupt and its answer go through @ag-ui/client ${version}`,
      check: async (bench) => {
        const [threadId, runId, next] = [bench.id("t"), bench.id("run"), bench.id("run")];
        const client = new Client(version, bench.way, "/agent/asker/run", { threadId });
        client.say(`${runId}-user`, "may I?");
        await bench.patience.within(client.run({ runId }), "the end of the run that asks");
        client.expectNoFailure();
        expectSame(client.view.interrupts, [interruptOf(runId)], "the question must be told");
        const later = await connected(bench, version, threadId);
        expectSame(later.interrupts, [interruptOf(runId)], "the question must be told to whoever comes later");
        const resume = [{ interruptId: interruptOf(runId).id, status: "resolved" as const, payload: { yes: true } }];
        await bench.patience.within(client.run({ runId: next, resume }), "the end of the run that was answered");
        client.expectNoFailure();
        expectSame(
          client.view.messages.at(-1)?.content,
          'It was [["resolved",{"yes":true}]]',
          "the answer must come to the agent",
        );
        expectSame(client.view.interrupts, [], "an answered question must be gone");
        expectSame((await connected(bench, version, threadId)).interrupts, [], "and for whoever comes later");
      },
    },
    {
      name: `@ag-ui/client ${version}, which knows nothing of the thread, ends with the state that the log has (L2)`,
      check: async (bench) => {
        const threadId = bench.id("t");
        await bench.run("rich", { threadId });
        const client = new Client(version, bench.way, "/agent/adder/run", { threadId });
        for (const count of [3, 4]) {
          client.say(bench.id("user"), "go");
          await bench.patience.within(client.run(), "the end of a run");
          client.expectNoFailure();
          const state = { count, seen: ["a", "b"] };
          expectSame(client.view.state, state, "deltas must apply to the state that the run started from");
          expectSame((await connected(bench, version, threadId)).state, state, "the log must have it too");
        }
      },
    },
    {
      name: `@ag-ui/client ${version} answers under the id of the run that asked`,
      check: async (bench) => {
        const [threadId, runId] = [bench.id("t"), bench.id("run")];
        const client = new Client(version, bench.way, "/agent/asker/run", { threadId });
        client.say(`${runId}-user`, "may I?");
        await bench.patience.within(client.run({ runId }), "the end of the run that asks");
        const resume = [{ interruptId: interruptOf(runId).id, status: "resolved" as const, payload: 1 }];
        await bench.patience.within(client.run({ runId, resume }), "the end of the run that was answered");
        client.expectNoFailure();
        expectSame(client.runIds, [runId, runId], "events must carry the id that the client asked with");
        expectSame(
          client.view.messages.at(-1)?.content,
          'It was [["resolved",1]]',
          "the answer must come to the agent",
        );
        expectSame(client.view.interrupts, [], "an answered question must be gone");
        const later = await connected(bench, version, threadId);
        expectSame([later.messages, later.interrupts], [client.view.messages, []], "and for whoever comes later");
      },
    },
    {
      name: `@ag-ui/client ${version} answers LangGraph under the id of the run that asked, and sends it again`,
      check: async (bench) => {
        const [threadId, runId] = [bench.id("t"), bench.id("run")];
        const client = new Client(version, bench.way, "/agent/holder/run", { threadId });
        client.say(`${runId}-user`, "go");
        const gate = bench.id("gate");
        await bench.open(gate);
        await bench.patience.within(client.run({ runId, forwardedProps: { gate } }), "the end of the run that asks");
        const command = { resume: "yes", interruptEvent: "sure?" };
        const props = { gate: bench.id("gate"), command };
        const running = client.run({ runId, forwardedProps: props });
        await bench.patience.within(client.told(`CUSTOM ${WAITS}`, 2), "the run that was answered");
        // Its id is the one that the client knows.
        const stopped = await bench.post(`/agent/holder/stop/${threadId}`, { runId });
        expectThat(((await stopped.json()) as { stopped: boolean }).stopped, "a stop by the id must reach it");
        await bench.patience.within(running, "the end of the run that was answered");
        client.expectNoFailure();
        expectSame(client.runIds, [runId, runId], "events must carry the id that the client asked with");
        const { messages } = client.view;
        const sent = { threadId, runId, props, input: { messages: [...messages] } };
        const again = await bench.run("holder", sent);
        expectSame(again.filter(({ event }) => event["name"] === WAITS).length, 1, "it must be that run");
        expectSame(await bench.progress(runId), "aborted", "the agent must not be started again");
      },
    },
    {
      name: `@ag-ui/client ${version} leaves a run that goes on without it`,
      check: async (bench) => {
        const [threadId, runId, gate] = [bench.id("t"), bench.id("run"), bench.id("gate")];
        const client = new Client(version, bench.way, "/agent/holder/run", { threadId });
        client.say(`${runId}-user`, "go");
        const running = client.run({ runId, forwardedProps: { open: ["text"], gate } });
        await bench.patience.within(client.told(`CUSTOM ${WAITS}`), "the client's wait");
        client.leave();
        await bench.patience.within(
          running.catch(() => undefined),
          "a client that leaves",
        );
        expectSame(await bench.progress(runId), "started", "a run must not end with its reader");
        await bench.open(gate);
        await bench.patience.until(
          async () => (await connected(bench, version, threadId)).messages.at(-1)?.content === "half a sentence",
          "the end of the run in the log",
        );
      },
    },
    ...["thrower", "early", "inRun"].map((agentId): ContractCase => ({
      name: `the failure of ${agentId} is one for @ag-ui/client ${version}, and its thread goes on`,
      check: async (bench) => {
        const [threadId, runId] = [bench.id("t"), bench.id("run")];
        const client = new Client(version, bench.way, `/agent/${agentId}/run`, { threadId });
        client.say(`${runId}-user`, "go");
        await bench.patience.within(
          client.run({ runId }).catch(() => undefined),
          "the end of a run that fails",
        );
        expectThat(client.types.includes(EventType.RUN_ERROR), "it must be told of the failure");
        expectThat(client.failures.length > 0, "it must take it for one");
        const { messages } = await connectedAnyhow(bench, version, threadId);
        expectSame(messages[0]?.content, "go", "what the user said must be kept");
        await bench.expectFree(threadId);
      },
    })),
    {
      name: `a busy thread is a failure for @ag-ui/client ${version}`,
      check: async (bench) => {
        const threadId = bench.id("t");
        const { reader, letOn } = await bench.hold({ threadId });
        const client = new Client(version, bench.way, "/agent/echo/run", { threadId });
        client.say("mine", "me too");
        const failed = await bench.patience.within(
          client.run().then(
            () => false,
            () => true,
          ),
          "the refusal of a busy thread",
        );
        expectThat(failed, "runAgent must reject: an empty success would hide it");
        await letOn();
        await reader.all();
      },
    },
    {
      name: `@ag-ui/client ${version} goes on with a thread that it rebuilt, without a branch`,
      check: async (bench) => {
        const threadId = bench.id("t");
        await bench.run("rich", { threadId });
        // What only 1.0 has: parts with ids, a file that a provider keeps.
        const content = [
          { type: "text", text: "look", id: "p1" },
          { type: "document", id: "p2", source: { type: "file", value: "f1", mimeType: "application/pdf" } },
        ];
        const asked = bench.id("user");
        const messages = [{ id: asked, role: "user" as const, content: content as never }];
        await bench.run("echo", { threadId, input: { messages, protocolVersion: "1.0" } });
        const before = await bench.messages(threadId);
        const view = await connected(bench, version, threadId);
        const client = new Client(version, bench.way, "/agent/echo/run", { threadId, messages: view.messages });
        client.say(bench.id("user"), "and on");
        await bench.patience.within(client.run(), "the next run");
        client.expectNoFailure();
        const after = await bench.messages(threadId);
        expectSame(after.slice(0, before.length), before, "what was there must stay as it was");
        expectSame(after.length, before.length + 2, "the question and its answer must be added");
      },
    },
  ]),
  {
    name: "both clients end with the same messages, state and interrupts",
    check: async (bench) => {
      const threadId = bench.id("t");
      await bench.run("rich", { threadId });
      await bench.run("asker", { threadId });
      const [old, current] = [await connected(bench, "0.0.59", threadId), await connected(bench, "1.0.0", threadId)];
      expectSame(old, current, "a reader of each version must be led to the same");
    },
  },
];

/** As {@link connected}, where the thread's last run failed: that is told again. */
async function connectedAnyhow(bench: ContractBench, version: ClientVersion, threadId: string): Promise<ClientView> {
  const reader = new Client(version, bench.way, "/agent/echo/connect", { threadId });
  await bench.patience.within(
    reader.run().catch(() => undefined),
    "the end of a connect",
  );
  return reader.view;
}
