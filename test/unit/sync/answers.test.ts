import { EventType, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { expect, test } from "vitest";
import { agentOf, collect, inputOf, user } from "../runner/kit.js";
import { device, ended, eventually, MemoryServer, say, shown, type Device } from "./kit.js";

type Answer = Partial<Pick<RunAgentInput, "resume" | "forwardedProps">>;

const saidBy = ({ resume = [], forwardedProps }: Answer): unknown =>
  resume[0]?.payload ?? (forwardedProps as { command?: { resume?: unknown } } | undefined)?.command?.resume;

/** Asks once in each thread; says what it is answered. */
const asking = agentOf(async function* (input): AsyncGenerator<BaseEvent> {
  const { messages, threadId, runId } = input;
  const said = saidBy(input);
  if (typeof said === "string") {
    yield {
      type: EventType.TEXT_MESSAGE_CHUNK,
      messageId: `${runId}-${said}`,
      role: "assistant",
      delta: said,
    } as BaseEvent;
    return;
  }
  yield { type: EventType.CUSTOM, name: "on_interrupt", value: "ask" } as BaseEvent;
  // LangGraph's agents end without an outcome.
  if (messages.some(({ id }) => id.startsWith("command"))) return;
  const interrupts = [{ id: "i1", reason: "ask" }];
  yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: "interrupt", interrupts } } as BaseEvent;
});

/** As CopilotKit answers: under the id of the run that asked. */
const answer = ({ runner }: Device, given: Answer, runId = "r1") =>
  collect(runner.run({ threadId: "t", agent: asking, input: { ...inputOf("t", runId, []), ...given } }));

const resolved = (payload: string): Answer => ({ resume: [{ interruptId: "i1", status: "resolved", payload }] });
const command = (resume: string): Answer => ({ forwardedProps: { command: { resume } } });

/** The thread's runs with what they said, in the order of their beginnings, and the messages that are shown. */
async function seen(one: Device) {
  const runs = await one.runner.listRuns("t", { limit: 100 });
  const { messages } = await shown(one, "t");
  const lines = runs.map(({ runId, startedAt, status }) => `${runId} ${startedAt} ${status}`);
  return { runs: lines.toSorted(), shown: messages.map(({ content }) => content) };
}

async function offlineBoth(
  server: MemoryServer,
  phone: Device,
  laptop: Device,
  what: readonly [Answer, Answer],
): Promise<void> {
  phone.space.connect(false);
  laptop.space.connect(false);
  await answer(phone, what[0]);
  await answer(laptop, what[1]);
  phone.space.connect(true);
  await eventually(() => expect(ended(server)).toBe(2));
  laptop.space.connect(true);
}

test.each<[string, (said: string) => Answer]>([
  ["resume", resolved],
  ["command", command],
])("an answer by %s under the id of the run that asked is on all devices", async (by, of) => {
  const server = new MemoryServer();
  const [phone, laptop] = [device(server, "Phone"), device(server, "Laptop")];
  await say(phone, "t", "r1", asking, [user(by)]);
  await eventually(async () =>
    expect(await laptop.runner.getRun("r1", { threadId: "t" })).toMatchObject({ status: "finished" }),
  );
  await answer(phone, of("yes"));
  const here = await seen(phone);
  expect(here.runs).toHaveLength(2);
  expect(here.shown.at(-1)).toBe("yes");
  await eventually(async () => expect(await seen(laptop)).toEqual(here));
});

test("a device that does not know such names is told that it is outdated, and reads everything else", async () => {
  const server = new MemoryServer();
  const phone = device(server, "Phone");
  await say(phone, "t", "r1", asking, [user("resume")]);
  await eventually(() => expect(ended(server)).toBe(1));
  const versions = (): unknown[] => server.entries.map(({ body }) => JSON.parse(new TextDecoder().decode(body)).v);
  const before = versions();
  expect(new Set(before)).toEqual(new Set([1]));
  await answer(phone, resolved("yes"));
  await eventually(() => expect(ended(server)).toBe(2));
  // The claim, and the end.
  expect(versions().slice(before.length)).toMatchObject({ 0: 3 });
  expect(versions().at(-1)).toBe(3);
});

test.each<[string, readonly [Answer, Answer]]>([
  ["resume", [resolved("yes"), resolved("no")]],
  ["resume, alike", [resolved("yes"), resolved("yes")]],
  ["command", [command("yes"), command("no")]],
  ["command, alike", [command("yes"), command("yes")]],
])(
  "two devices that answer one question offline, by %s, keep both answers and agree which is active",
  async (by, what) => {
    const server = new MemoryServer();
    const [phone, laptop] = [device(server, "Phone"), device(server, "Laptop")];
    await say(phone, "t", "r1", asking, [user(by)]);
    await eventually(async () =>
      expect(await laptop.runner.getRun("r1", { threadId: "t" })).toMatchObject({ status: "finished" }),
    );
    await offlineBoth(server, phone, laptop, what);
    const tablet = device(server, "Tablet");
    await eventually(async () => expect((await seen(phone)).runs).toHaveLength(3));
    const here = await seen(phone);
    // It was there first.
    expect(here.shown.at(-1)).toBe(saidBy(what[0]));
    await eventually(async () => expect(await seen(laptop)).toEqual(here));
    await eventually(async () => expect(await seen(tablet)).toEqual(here));
    // The other one can be taken up, and that is told.
    const runs = await laptop.runner.listRuns("t", { limit: 100 });
    for (const run of runs) expect(run).not.toHaveProperty("answerId");
    const { startedAt } = runs.find((run) => run.prevRunIndex !== null && run.device?.name === "Phone")!;
    const own = runs.find((run) => run.prevRunIndex !== null && run.startedAt !== startedAt)!;
    await laptop.runner.activateRun("t", "r1", own.runIndex);
    await expect(laptop.runner.activateRun("t", "r2", own.runIndex)).rejects.toMatchObject({ code: "invalid-input" });
    const shownNow = (await seen(laptop)).shown;
    expect(shownNow.at(-1)).toBe(saidBy(what[1]));
    await eventually(async () => expect((await seen(phone)).shown).toEqual(shownNow));
    await eventually(async () => expect((await seen(tablet)).shown).toEqual(shownNow));
  },
);
