import { expectSame, expectThat } from "../../../../src/conformance/expect.js";
import { idOf, richEvents } from "./contract-agents.js";
import { expectJson, expectRefusal, type ContractBench, type ContractCase } from "./contract-bench.js";
import { typesOf, type Read } from "./reading.js";

interface Listed {
  readonly id: string;
  readonly name: string;
  readonly agentId: string;
  readonly archived: boolean;
  readonly createdAt: string;
  readonly updatedAt: string;
}

interface Page {
  readonly threads: readonly Listed[];
  readonly nextCursor: string | null;
}

const list = async (bench: ContractBench, query: string): Promise<Page> =>
  (await expectJson(await bench.get(`/threads${query}`))) as Page;

/** The whole list of an agent, page by page. */
async function pages(bench: ContractBench, query: string, limit: number): Promise<readonly Listed[]> {
  const all: Listed[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < 100; page++) {
    const at: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const { threads, nextCursor } = await list(bench, `${query}&limit=${limit}${at}`);
    expectThat(threads.length <= limit, "a page must not be longer than it was asked for");
    all.push(...threads);
    if (nextCursor === null) break;
    cursor = nextCursor;
  }
  return all;
}

const find = async (bench: ContractBench, threadId: string, query = "?limit=500"): Promise<Listed | undefined> =>
  (await list(bench, query)).threads.find(({ id }) => id === threadId);

const ask = (bench: ContractBench, method: string, path: string, body?: unknown): Promise<Response> =>
  body === undefined ? bench.way.request(path, { method }) : bench.post(path, body, { method });

const listing: readonly ContractCase[] = [
  {
    name: "the list of threads tells of each as CopilotKit's front end reads it",
    check: async (bench) => {
      const threadId = bench.id("t");
      await bench.run("echo", { threadId, says: "what about it?" });
      const { createdAt, updatedAt, ...thread } = (await find(bench, threadId))!;
      const rest = { organizationId: "", createdById: "", archived: false };
      expectSame(
        thread,
        { id: threadId, name: "what about it?", agentId: "echo", ...rest },
        "a thread must be told of",
      );
      for (const time of [createdAt, updatedAt]) {
        expectSame(new Date(time).toISOString(), time, "times must be those of ISO 8601");
      }
    },
  },
  {
    name: "the list of an agent has its threads alone, newest first, whatever the pages' length",
    check: async (bench) => {
      const made: string[] = [];
      for (let n = 0; n < 7; n++) {
        made.push(bench.id("listed"));
        await bench.run("lister", { threadId: made.at(-1)! });
      }
      await bench.run("echo", { threadId: bench.id("t") });
      const all = (await list(bench, "?agentId=lister&limit=500")).threads;
      expectSame(all.map(({ id }) => id).toSorted(), made.toSorted(), "the list must have the agent's threads");
      const times = all.map(({ updatedAt }) => updatedAt);
      expectSame(times, times.toSorted().toReversed(), "the newest must come first");
      for (const limit of [1, 2, 3, 6, 7, 8]) {
        expectSame(await pages(bench, "?agentId=lister", limit), all, `pages of ${limit} must have each thread once`);
      }
      await expectJson(await ask(bench, "POST", `/threads/${made[3]}/archive`, {}));
      const rest = all.filter(({ id }) => id !== made[3]);
      for (const limit of [2, 500]) {
        expectSame(await pages(bench, "?agentId=lister", limit), rest, "what is archived must not be shown");
        const withArchived = await pages(bench, "?agentId=lister&includeArchived=true", limit);
        expectSame(
          withArchived.map(({ id }) => id),
          all.map(({ id }) => id),
          "what is archived must be shown where it is asked for",
        );
      }
    },
  },
  {
    name: "the list of threads is empty where none are asked for",
    check: async (bench) => {
      const nothing = { threads: [], nextCursor: null };
      expectSame(await list(bench, "?agentId=nobody"), nothing, "an unknown agent has no threads");
      expectSame(await list(bench, "?limit=0"), nothing, "no threads were asked for");
    },
  },
  ...["?limit=-1", "?limit=x", "?limit=1.5", "?limit=1e3", "?cursor=x", "?cursor=-1", "?limit=9999999999999999"].map(
    (query): ContractCase => ({
      name: `the list of threads refuses ${query}`,
      check: async (bench) => {
        await expectRefusal(await bench.get(`/threads${query}`), 400, { error: "Invalid query" });
      },
    }),
  ),
];

const reading: readonly ContractCase[] = [
  {
    name: "messages are told in CopilotKit's shape",
    check: async (bench) => {
      const [threadId, runId] = [bench.id("t"), bench.id("run")];
      await bench.run("rich", { threadId, runId });
      const messages = await bench.messages(threadId);
      expectSame(
        messages.filter(({ role }) => role !== "reasoning" && role !== "activity"),
        [
          { id: `${runId}-user`, role: "user", content: "hello" },
          {
            id: idOf(runId, "text"),
            role: "assistant",
            content: "I look it up: 👋 “\u2028”",
            toolCalls: [{ id: idOf(runId, "call"), name: "look", args: '{"at":"here"}' }],
          },
          { id: idOf(runId, "result"), role: "tool", content: "found", toolCallId: idOf(runId, "call") },
          { id: idOf(runId, "end"), role: "assistant", content: "That is it." },
        ],
        "each message must be told",
      );
    },
  },
  {
    name: "events of a thread are those of its runs, compacted",
    check: async (bench) => {
      const [threadId, runId] = [bench.id("t"), bench.id("run")];
      await bench.run("rich", { threadId, runId });
      const { events } = (await expectJson(await bench.get(`/threads/${threadId}/events`))) as {
        events: Read["event"][];
      };
      const types = typesOf(events.map((event) => ({ event })));
      expectSame(types[0], "RUN_STARTED", "they must begin with the run's start");
      expectSame(types.at(-1), "RUN_FINISHED", "they must end with the run's end");
      const missing = richEvents({ runId }).filter(
        ({ type }) => !types.includes(type) && type !== "STATE_DELTA" && type !== "ACTIVITY_DELTA",
      );
      expectSame(missing, [], "what was said must be among them");
    },
  },
  {
    name: "the state of a thread is told",
    check: async (bench) => {
      const threadId = bench.id("t");
      await bench.run("rich", { threadId });
      const state = await expectJson(await bench.get(`/threads/${threadId}/state`));
      expectSame(state, { state: { count: 2, seen: ["a", "b"] } }, "it must be that after its last run");
    },
  },
  {
    name: "a live run's messages are told as far as they are",
    check: async (bench) => {
      const [threadId, runId] = [bench.id("t"), bench.id("run")];
      const { reader, letOn } = await bench.hold({ threadId, runId, props: { open: ["text"] } });
      const open = (await bench.messages(threadId)).find(({ id }) => id === idOf(runId, "text"));
      expectSame(open?.["content"], "half a ", "what has been said must be told");
      await letOn();
      await reader.all();
    },
  },
  {
    name: "an unknown thread has no messages, no events and no state",
    check: async (bench) => {
      const path = `/threads/${bench.id("t")}`;
      expectSame(await expectJson(await bench.get(`${path}/messages`)), { messages: [] }, "no messages");
      expectSame(await expectJson(await bench.get(`${path}/events`)), { events: [] }, "no events");
      expectSame(await expectJson(await bench.get(`${path}/state`)), { state: null }, "no state");
    },
  },
];

const changing: readonly ContractCase[] = [
  {
    name: "a thread is renamed, and told as it is then",
    check: async (bench) => {
      const threadId = bench.id("t");
      await bench.run("echo", { threadId });
      const told = (await expectJson(
        await ask(bench, "PATCH", `/threads/${threadId}`, { name: "Züge 🚆", agentId: "echo" }),
      )) as Listed;
      expectSame(told.name, "Züge 🚆", "the answer must be the thread");
      expectSame(await find(bench, threadId), told, "the list must have the new name");
    },
  },
  {
    name: "a thread is archived, shown where that is asked for, and comes back",
    check: async (bench) => {
      const threadId = bench.id("t");
      await bench.run("echo", { threadId });
      const answer = await expectJson(await ask(bench, "POST", `/threads/${threadId}/archive`, { agentId: "echo" }));
      expectSame(answer, { threadId, archived: true }, "it must be answered");
      expectSame(await find(bench, threadId), undefined, "what is archived must not be shown");
      const archived = await find(bench, threadId, "?limit=500&includeArchived=true");
      expectSame(archived?.archived, true, "it must be shown as what it is");
      await expectJson(await ask(bench, "PATCH", `/threads/${threadId}`, { archived: false }));
      expectSame((await find(bench, threadId))?.archived, false, "it must come back");
    },
  },
  {
    name: "a thread is deleted once",
    check: async (bench) => {
      const threadId = bench.id("t");
      await bench.run("echo", { threadId });
      const answer = await expectJson(await ask(bench, "DELETE", `/threads/${threadId}`));
      expectSame(answer, { threadId, deleted: true }, "it must be answered");
      expectSame(await bench.messages(threadId), [], "it must be gone");
      expectSame(await find(bench, threadId), undefined, "it must be gone from the list");
      await expectRefusal(await ask(bench, "DELETE", `/threads/${threadId}`), 404);
      await bench.expectFree(threadId);
    },
  },
  {
    name: "a live run is stopped before its thread is deleted",
    check: async (bench) => {
      const [threadId, runId] = [bench.id("t"), bench.id("run")];
      const { reader } = await bench.hold({ threadId, runId, props: { open: ["text"] } });
      await expectJson(await ask(bench, "DELETE", `/threads/${threadId}`));
      await bench.patience.within(
        reader.all().catch(() => undefined),
        "the end of the run of a deleted thread",
      );
      expectSame(await bench.progress(runId), "aborted", "the run must be stopped");
      await bench.expectFree(threadId);
    },
  },
  ...(
    [
      ["PATCH", "", { name: "x" }],
      ["POST", "/archive", {}],
      ["DELETE", "", undefined],
    ] as const
  ).map(([method, more, body]): ContractCase => ({
    name: `${method} of an unknown thread${more} says that there is none`,
    check: async (bench) => {
      const threadId = bench.id("t");
      const answer = await ask(bench, method, `/threads/${threadId}${more}`, body);
      await expectRefusal(answer, 404, { error: "unknown-thread", threadId });
    },
  })),
  ...(
    [
      ["a list", []],
      ["an unknown field", { title: "x" }],
      ["a name that is a number", { name: 1 }],
      ["archived that is a text", { archived: "yes" }],
      ["pinned of null", { pinned: null }],
    ] as const
  ).map(([what, body]): ContractCase => ({
    name: `PATCH of a thread refuses ${what} and changes nothing`,
    check: async (bench) => {
      const threadId = bench.id("t");
      await bench.run("echo", { threadId });
      const before = await find(bench, threadId);
      await expectRefusal(await ask(bench, "PATCH", `/threads/${threadId}`, body), 400, {
        error: "Invalid request body",
      });
      expectSame(await find(bench, threadId), before, "nothing must be changed");
    },
  })),
  {
    name: "clear deletes every thread, and stops what is live",
    check: async (bench) => {
      const [threadId, runId] = [bench.id("t"), bench.id("run")];
      await bench.run("echo", { threadId: bench.id("t") });
      const { reader } = await bench.hold({ threadId, runId });
      const answer = await ask(bench, "POST", "/threads/clear");
      expectSame(answer.status, 204, "it must be answered without a body");
      expectSame(await answer.text(), "", "it must be answered without a body");
      await bench.patience.within(
        reader.all().catch(() => undefined),
        "the end of the live run",
      );
      expectSame((await list(bench, "?includeArchived=true")).threads, [], "no thread must be left");
      await bench.expectFree(threadId);
    },
  },
];

export const THREAD_CASES: readonly ContractCase[] = [...listing, ...reading, ...changing];
