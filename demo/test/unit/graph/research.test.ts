import "fake-indexeddb/auto";
import { enforceEvents, verifyEvents } from "@ag-ui/client";
import { type BaseEvent, EventType, type Message, type RunAgentInput } from "@ag-ui/core";
import { from } from "rxjs";
import type { Attempt } from "ag-ui-local-runtime/worker";
import { expect, test } from "vitest";
import { NODE_NAMES, TITLES } from "../../../graph/nodes.js";
import { research } from "../../../graph/research.js";
import { hashText } from "../../../documents/files.js";
import { freshName, opened } from "../../../../test/unit/langgraph/kit.js";

const GUIDE =
  "# Guide\n\n## Lamps\n\nThe lamp burned oil. It was trimmed every four hours.\n\n## Fog\n\nIn fog the horn was blown.\n";
const STORY = "The keeper left the lamp to the engineer. Nobody heard the horn that year.\n";

interface Outcome {
  readonly events: readonly BaseEvent[];
  /** The texts of its messages. */
  readonly said: readonly string[];
  /** The nodes that said something, by their titles. */
  readonly steps: readonly string[];
}

/** A thread with Researcher over two texts, whose hosts come and go: what a graph knows is in the database alone. */
class Thread {
  readonly #dbName = freshName();
  readonly #messages: Message[] = [];
  readonly #files = new Map<string, string>();
  #runs = 0;

  async library() {
    return Promise.all(
      [
        ["guide.md", "text/markdown", GUIDE],
        ["story.txt", "text/plain", STORY],
      ].map(async ([name = "", type = "", text = ""]) => {
        const id = await hashText(text);
        this.#files.set(id, text);
        return { id, name, type, size: text.length };
      }),
    );
  }

  /**
   * Says something, in a host of its own.
   *
   * @param until ends the host with this event
   */
  async send(content: string, until: (event: BaseEvent) => boolean = () => false): Promise<Outcome> {
    this.#messages.push({ id: `user-${this.#runs}`, role: "user", content });
    return this.run(until);
  }

  /** Goes on with the last run, as the host does where that one broke. */
  async recover(left: readonly Message[]): Promise<Outcome> {
    this.#messages.push(...left);
    return this.run(() => false, { of: `run-${this.#runs}`, number: 2 });
  }

  private async run(until: (event: BaseEvent) => boolean, attempt?: Attempt): Promise<Outcome> {
    const input: RunAgentInput = {
      threadId: "thread",
      runId: `run-${++this.#runs}`,
      messages: [...this.#messages],
      state: {},
      tools: [],
      context: [],
    };
    const saver = opened(this.#dbName);
    const ending = new AbortController();
    const tools = {
      saver,
      load: async (id: string) => ({ text: this.#files.get(id)! }),
      library: () => this.library(),
      pace: 0,
      cache: new Map(),
    };
    const events: BaseEvent[] = [];
    for await (const event of research(input, { signal: ending.signal, ...(attempt && { attempt }) }, tools)) {
      events.push(event);
      if (!until(event)) continue;
      // Nothing that it still does is kept: as if it had been killed.
      await saver.close();
      ending.abort();
      break;
    }
    const texts = new Map<string, string>();
    for (const event of events as (BaseEvent & { messageId?: string; delta?: string })[]) {
      if (event.type === EventType.TEXT_MESSAGE_CONTENT)
        texts.set(event.messageId!, (texts.get(event.messageId!) ?? "") + event.delta);
    }
    const steps = events.flatMap((event) =>
      event.type === EventType.STEP_STARTED ? [(event as { stepName?: string }).stepName!] : [],
    );
    return { events, said: [...texts.values()], steps };
  }
}

const titles = NODE_NAMES.map((name) => TITLES[name]);

/** The middle of a node: it has said something. */
function within(title: string): (event: BaseEvent) => boolean {
  let begun = false;
  return (event) => {
    begun ||= event.type === EventType.STEP_STARTED && (event as { stepName?: string }).stepName === title;
    return begun && event.type === EventType.TEXT_MESSAGE_CONTENT;
  };
}

test("a question goes through all nodes, each a message of its own, in a valid stream", async () => {
  const { events, said, steps } = await new Thread().send("What of the lamp and the horn?");
  expect(steps).toEqual(titles);
  expect(said).toHaveLength(titles.length);
  const whole = said.join("\n");
  expect(whole).toContain("It was trimmed every four hours");
  expect(whole).toContain("- “horn”: *story.txt*, *guide.md*");
  const run = { threadId: "thread", runId: "run" };
  const stream = [{ type: EventType.RUN_STARTED, ...run }, ...events, { type: EventType.RUN_FINISHED, ...run }];
  const seen: BaseEvent[] = [];
  await from(stream as BaseEvent[])
    .pipe(enforceEvents(), verifyEvents(false))
    .forEach((event) => void seen.push(event));
  expect(seen).toHaveLength(stream.length);
});

test.each(titles)("a host that ends in “%s” is gone on with there, and nothing before is done again", async (title) => {
  const whole = await new Thread().send("What of the lamp and the horn?");
  const thread = new Thread();
  const at = titles.indexOf(title);
  const first = await thread.send("What of the lamp and the horn?", within(title));
  expect(first.steps).toEqual(titles.slice(0, at + 1));
  const second = await thread.send("go on");
  expect(second.steps).toEqual(titles.slice(at));
  const [told, ...rest] = second.said;
  expect(told).toContain(`Now: **${title}**`);
  expect([...first.said.slice(0, at), ...rest]).toEqual(whole.said);
});

test("where the host recovers it, it goes on from its checkpoint, and what was cut off is said once", async () => {
  const whole = await new Thread().send("What of the lamp and the horn?");
  const thread = new Thread();
  const first = await thread.send("What of the lamp and the horn?", within(TITLES.compare));
  const ids = new Set(first.events.flatMap((event) => (event as { messageId?: string }).messageId ?? []));
  const left = [...ids].map((id, at): Message => ({ id, role: "assistant", content: first.said[at]! }));
  const second = await thread.recover(left);
  const at = titles.indexOf(TITLES.compare);
  expect(second.steps).toEqual(titles.slice(at));
  const [snapshot] = second.events as (BaseEvent & { messages?: readonly Message[] })[];
  const kept = snapshot?.messages?.flatMap(({ role, content }) => (role === "assistant" ? [content] : []));
  expect([...kept!, ...second.said]).toEqual(whole.said);
});

test("the same question again goes on too, a new one begins anew", async () => {
  const thread = new Thread();
  await thread.send("What of the lamp?", within(TITLES.compare));
  expect((await thread.send("What of the lamp?", within(TITLES.compare))).steps).toEqual([TITLES.compare]);
  const other = await thread.send("What of the fog?");
  expect(other.steps).toEqual(titles);
  expect(other.said.join("\n")).toContain("In fog the horn was blown");
  expect(other.said.join("\n")).not.toContain("trimmed");
});

test.each(["hello", "Hi Researcher!", "what can you do?"])(
  "“%s” is greeted back, and searched for in nothing",
  async (text) => {
    const { steps, said } = await new Thread().send(text);
    expect(steps).toEqual([]);
    expect(said[0]).toContain("Hello, I am Researcher");
  },
);

test("asked to go on where nothing is left, it says so", async () => {
  const thread = new Thread();
  await thread.send("What of the lamp?");
  expect(await thread.send("Go on!")).toMatchObject({
    steps: [],
    said: [expect.stringContaining("nothing left to continue")],
  });
});

test("a question without a word to search for, and one that nobody answers, are told", async () => {
  const thread = new Thread();
  expect((await thread.send("What is it?")).said.join("\n")).toContain("no word that I could search for");
  expect((await thread.send("What of zeppelins?")).said.at(-1)).toContain("I found nothing about");
});
