import { afterEach, beforeEach, expect, test } from "vitest";
import { type Ids, serverThat, sse } from "./driver/agent-server.js";
import { type LabTab, LabTabs, useBrowser } from "./driver/scripted.js";

const given = useBrowser();
let tabs: LabTabs;
beforeEach(() => {
  tabs = new LabTabs(given);
});
afterEach(() => tabs.close());

function nested(levels: number): unknown {
  let value: unknown = 0;
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

const patch = (...delta: object[]): object => ({ type: "STATE_DELTA", delta });
const activity = { type: "ACTIVITY_SNAPSHOT", messageId: "plan", activityType: "plan", content: {} };
const change = (...operations: object[]): object => ({
  type: "ACTIVITY_DELTA",
  messageId: "plan",
  activityType: "plan",
  patch: operations,
});
const inherited = { op: "move", from: "/toString", path: "/x" };
const copies = Array.from({ length: 26 }, (_, n) => ({ op: "copy", from: "", path: `/${n}` }));

/** What an agent on a server sends, and the code of the end of its run. */
const HOSTILE: [string, object[], string][] = [
  ["a patch that moves what objects inherit", [patch(inherited)], "INVALID_STREAM"],
  ["such a patch of an activity", [activity, change(inherited)], "INVALID_STREAM"],
  ["a patch bomb", [patch(...copies)], "EVENT_LIMIT"],
  ["a patch bomb in an activity", [activity, change(...copies)], "EVENT_LIMIT"],
  [
    "many patches that each double the state",
    [
      { type: "STATE_SNAPSHOT", snapshot: { text: "x".repeat(100_000) } },
      ...Array.from({ length: 30 }, (_, n) => patch({ op: "copy", from: "", path: `/${n}` })),
    ],
    "EVENT_LIMIT",
  ],
  ["an event that is nested 3,000 deep", [{ type: "CUSTOM", name: "deep", value: nested(3_000) }], "EVENT_LIMIT"],
  ["a state that is nested 3,000 deep", [{ type: "STATE_SNAPSHOT", snapshot: nested(3_000) }], "EVENT_LIMIT"],
];

const said = (messageId: string, delta: string): object[] => [
  { type: "TEXT_MESSAGE_START", messageId, role: "assistant" },
  { type: "TEXT_MESSAGE_CONTENT", messageId, delta },
  { type: "TEXT_MESSAGE_END", messageId },
];

/** What a reader that comes now is given of the thread. */
const readBy = (tab: LabTab) =>
  tab.tab.evaluate(async () => {
    const agent = window.lab.runtime.agent("server", { threadId: "thread" });
    await agent.connectAgent();
    return { messages: agent.messages, state: agent.state as unknown };
  });

test.each(HOSTILE)("%s costs its own run: every tab sees that, and the next run (L19)", async (_what, events, code) => {
  const answers = [
    (ids: Ids) => [
      { type: "RUN_STARTED", ...ids },
      ...said("before", "so far"),
      ...events,
      { type: "RUN_FINISHED", ...ids },
    ],
    (ids: Ids) => [{ type: "RUN_STARTED", ...ids }, ...said("after", "all well"), { type: "RUN_FINISHED", ...ids }],
  ];
  const { url } = await serverThat((response, ids) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(sse(answers.shift()!(ids)));
  });
  const [a, b] = [
    await (await tabs.open()).follow("server", "thread"),
    await (await tabs.open()).follow("server", "thread"),
  ];
  await a.start("thread", { url });
  for (const tab of [a, b]) {
    const view = await tab.settled("thread");
    expect(view).toMatchObject({ run: { last: { status: "errored" } } });
    expect(view.messages).toContain("assistant: so far");
    expect(view.ends).toMatchObject([{ type: "RUN_ERROR", code }]);
  }

  await b.start("thread", { url });
  for (const tab of [a, b]) {
    await tab.tab.waitFor(() => window.lab.view("thread").ends.length === 2);
    const view = await tab.settled("thread");
    expect(view).toMatchObject({ run: { last: { status: "finished" } }, text: "all well" });
  }
  expect((await a.view("thread")).messages).toEqual((await b.view("thread")).messages);
  const fresh = await readBy(await (await tabs.open()).takePart("server", "thread"));
  expect(await readBy(a)).toEqual(fresh);
  expect(await readBy(b)).toEqual(fresh);
  expect(fresh.messages.map(({ id }) => id)).toEqual(expect.arrayContaining(["before", "after"]));
});
