import { EventType } from "@ag-ui/core";
import type { AGUIEvent } from "@ag-ui/core";
import { cases } from "./case.js";
import { expectSame, expectThat, shown } from "./expect.js";
import { say } from "./good-agents.js";
import { mustHold } from "./misbehaving-cases.js";
import { afterAnswer, SAID } from "./misbehaving/agent.js";

/** An agent that emits text, then these events, and finishes. */
const emitting = (event: AGUIEvent): ReturnType<typeof afterAnswer> =>
  afterAnswer(({ input, emit }) => emit(event, say.finished(input)));

const patch = (delta: readonly object[]): AGUIEvent =>
  ({ type: EventType.STATE_DELTA, delta: [...delta] }) as AGUIEvent;

function nested(levels: number): unknown {
  let value: unknown = 0;
  for (let level = 0; level < levels; level++) value = [value];
  return value;
}

const custom = (value: unknown): AGUIEvent => ({ type: EventType.CUSTOM, name: "costly", value });

/** Events beyond every limit. Made on demand. */
const COSTLY: readonly [string, () => AGUIEvent][] = [
  [
    "a patch that doubles the state again and again",
    () => patch(Array.from({ length: 26 }, (_, n) => ({ op: "copy", from: "", path: `/copy-${n}` }))),
  ],
  [
    "a patch of very many operations",
    () => patch(Array.from({ length: 20_000 }, () => ({ op: "test", path: "/list", value: ["first"] }))),
  ],
  ["an event that is nested too deeply", () => custom(nested(3_000))],
  ["an event that is too large", () => custom("x".repeat(2 ** 25))],
];

/** What one event of an agent must not do to a thread. */
export const limitCases = cases([
  {
    id: "limits.own-properties-only",
    level: "full",
    title: "a patch that reaches for what JavaScript objects inherit is handed to nobody",
    says: "A patch that reads or writes anything but the document's own fields and items must change nothing, and must not be handed out: AG-UI clients apply it.",
    async check(bench) {
      const inherited = [
        { op: "move", from: "/toString", path: "/stolen" },
        { op: "copy", from: "/list/length", path: "/stolen" },
        { op: "replace", path: "/valueOf", value: "stolen" },
      ];
      for (const operation of inherited) {
        await mustHold(bench, {
          name: "inherits",
          does: "patches what objects inherit",
          make: emitting(patch([operation])),
          keeps: SAID,
          check: ({ events, replay, view }) => {
            const handedOut = [...events, ...replay].filter(({ type }) => type === EventType.STATE_DELTA);
            expectThat(handedOut.length === 0, "such a patch must not be handed out", shown(handedOut));
            expectSame(view.state, { list: ["first"] }, "the state after it");
          },
        });
      }
    },
  },
  {
    id: "limits.costly-events",
    level: "full",
    title: "an event that costs more than it may ends its run, and nothing else",
    says: "An event of too many operations, copies, levels or bytes must not be recorded; its run must end with RUN_ERROR, code EVENT_LIMIT, and keep what came before.",
    async check(bench) {
      for (const [what, event] of COSTLY) {
        await mustHold(bench, {
          name: "costly",
          does: `emits ${what}`,
          make: emitting(event()),
          ends: EventType.RUN_ERROR,
          keeps: SAID,
          check: ({ events }) =>
            expectSame(events.at(-1)?.["code"], "EVENT_LIMIT", `the code of the end after ${what}`),
        });
      }
    },
  },
  {
    id: "limits.json-form",
    level: "full",
    title: "a value that is no JSON is handed to everybody as its JSON form",
    says: "AG-UI is JSON: a Date, a Map, a class instance or NaN that an agent yields must be recorded and handed out as what JSON makes of it, or readers in the process, in tabs and over HTTP rebuild different states.",
    async check(bench) {
      const odd = (): object => ({ when: new Date(0), list: [NaN, undefined, new Map()] });
      const form = { when: "1970-01-01T00:00:00.000Z", list: [null, null, {}] };
      await mustHold(bench, {
        name: "no-json",
        does: "yields values that are no JSON",
        make: emitting({ type: EventType.STATE_SNAPSHOT, snapshot: odd() }),
        ends: EventType.RUN_FINISHED,
        keeps: SAID,
        check: ({ events, replay, view }) => {
          expectSame(view.state, form, "the state on replay");
          for (const event of [...events, ...replay]) {
            expectSame(event, JSON.parse(JSON.stringify(event)), "an event that is handed out must be JSON");
          }
        },
      });
    },
  },
]);
