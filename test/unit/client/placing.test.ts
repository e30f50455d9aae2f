import type { Message } from "@ag-ui/client";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Placing } from "../../../src/client/apply/placing.js";
import { times } from "../property.js";
import { user } from "../runner/kit.js";

/** As said, looking at every message each time. */
function placed(
  messages: readonly Message[],
  held: readonly Message[],
  begunWith: readonly Message[],
  isUnsent: (message: Message) => boolean,
  isOwn: boolean,
): readonly Message[] {
  const has = (all: readonly Message[], { id }: Message): boolean => all.some((message) => message.id === id);
  const added = held.filter((message) => isUnsent(message) && !has(messages, message) && !has(begunWith, message));
  const waiting = isOwn ? [] : messages.filter(isUnsent);
  return [...messages.filter((message) => !waiting.includes(message)), ...waiting, ...added];
}

const id = fc.constantFrom("a", "b", "c", "d", "e", "f");

/** What happens between two mutations, and the messages of the next one. */
const step = fc.record({
  sent: fc.subarray(["a", "b", "c", "d", "e", "f"], { maxLength: 2 }),
  person: fc.oneof(
    fc.record({ does: fc.constant("push" as const), id }),
    fc.record({ does: fc.constant("swap" as const), id }),
    fc.record({ does: fc.constant("nothing" as const), id }),
  ),
  pipeline: fc.oneof(
    fc.record({ does: fc.constant("append" as const), id }),
    fc.record({ does: fc.constant("change" as const), id }),
    fc.record({ does: fc.constant("drop" as const), id }),
  ),
});

test("what was not sent stands where it would if every message were looked at each time (L2)", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(id),
      fc.subarray(["a", "b", "c"]),
      fc.boolean(),
      fc.array(step),
      (ids, known, isOwn, all) => {
        const begunWith = ids.map((one) => user(one));
        const sent = new Set(known);
        const placing = new Placing(begunWith, (one) => !sent.has(one), isOwn);
        let held: readonly Message[] = begunWith;
        let messages: readonly Message[] = begunWith;
        for (const { sent: nowSent, person, pipeline } of all) {
          for (const one of nowSent) sent.add(one);
          const here = held.some((message) => message.id === person.id);
          if (person.does === "push" && !here) held = [...held, user(person.id)];
          if (person.does === "swap" && !here && held.length > 0) held = [...held.slice(0, -1), user(person.id)];
          const has = messages.some((message) => message.id === pipeline.id);
          // What the pipeline adds came from the log.
          if (pipeline.does === "append" && !has) {
            sent.add(pipeline.id);
            messages = [...messages, user(pipeline.id)];
          }
          if (pipeline.does === "change") {
            messages = messages.map((message) => (message.id === pipeline.id ? user(pipeline.id, "changed") : message));
          }
          if (pipeline.does === "drop") messages = messages.filter((message) => message.id !== pipeline.id);
          const given = [...messages];
          const expected = placed(given, held, begunWith, (message) => !sent.has(message.id), isOwn);
          held = placing.place(given, held);
          expect(held).toEqual(expected);
        }
      },
    ),
    times(500),
  );
});

test("as long as nothing is unsent, only messages that are new are asked for (L17)", () => {
  let asked = 0;
  const begunWith = Array.from({ length: 200 }, (_, n) => user(`m${n}`));
  const isUnsent = (): boolean => {
    asked++;
    return false;
  };
  const placing = new Placing(begunWith, isUnsent, false);
  asked = 0;
  let held: Message[] = begunWith;
  for (let n = 0; n < 100; n++) held = placing.place([...begunWith, user("answer", "x".repeat(n))], held);
  expect(asked).toBe(100);
});
