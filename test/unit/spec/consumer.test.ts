import { EventType } from "@ag-ui/client";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { mustBeClosed, mustBeOneRun, mustBeValid, type View } from "../../../src/conformance/view.js";
import { makeRunner } from "../runner/kit.js";
import { drive, StreamServer } from "./drive.js";
import { STREAMS } from "./streams.js";

const server = new StreamServer();
beforeAll(() => server.start());
afterAll(() => server.stop());

/** The messages but those that the tests themselves ask with. */
const answers = ({ messages }: View): View["messages"] => messages.filter(({ id }) => !/^u-\d+$/.test(id));

/** Calls of tools that have no result. */
function pendingOf({ messages }: View): string[] {
  const answered = new Set(messages.map((message) => (message.role === "tool" ? message.toolCallId : undefined)));
  const called = messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []));
  return called.map(({ id }) => id).filter((id) => !answered.has(id));
}

describe.each(Object.entries(STREAMS))("%s", (_, streams) => {
  test.each(streams)("$name", async (stream) => {
    // The client says there what it drops.
    const quiet = [vi.spyOn(console, "warn"), vi.spyOn(console, "error")];
    for (const spy of quiet) spy.mockImplementation(() => {});
    const { run, events, views } = await drive(makeRunner(), server, stream).finally(() => {
      for (const spy of quiet) spy.mockRestore();
    });

    mustBeValid("the log", events);
    mustBeClosed("the log", events);
    mustBeOneRun("the log", events, { threadId: "t", runId: run.runId });
    const terminal = events.at(-1)!;
    expect({ status: run.status, code: terminal["code"] }, `the end of ${JSON.stringify(terminal)}`).toEqual({
      status: stream.status,
      code: stream.code === null ? undefined : (stream.code ?? undefined),
    });
    if (stream.says !== undefined) expect(terminal["message"]).toContain(stream.says);

    const types = events.map(({ type }) => type as string);
    for (const type of stream.without ?? []) expect(types).not.toContain(type);
    for (const [type, part] of Object.entries(stream.events ?? {})) {
      expect(events.find((event) => event.type === type)).toMatchObject(part);
    }
    for (const [type, fields] of Object.entries(stream.absent ?? {})) {
      const event = events.find((other) => other.type === (type as EventType));
      for (const field of fields) expect(event).not.toHaveProperty(field);
    }

    for (const [way, view] of Object.entries(views)) {
      if (stream.messages !== undefined) {
        expect(answers(view), way).toMatchObject(stream.messages);
        expect(answers(view), way).toHaveLength(stream.messages.length);
      }
      if ("state" in stream) expect(view.state, way).toEqual(stream.state);
      if (stream.interrupts !== undefined)
        expect(
          view.interrupts.map(({ id }) => id),
          way,
        ).toEqual(stream.interrupts);
      if (stream.pending !== undefined) expect(pendingOf(view), way).toEqual(stream.pending);
    }
    const [first, ...others] = Object.entries(views);
    for (const [way, view] of others) {
      expect({ way, ...view }, `as ${first![0]}`).toEqual({ way, ...first![1] });
    }
  });
});
