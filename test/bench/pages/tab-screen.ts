import { AbstractAgent, type BaseEvent, type Message, type RunAgentInput } from "@ag-ui/client";
import { mergeMap, type Observable, tap } from "rxjs";
import { runFrames } from "../../../src/client/frames.js";
import { unpackEntry } from "../../../src/run/pack.js";
import type { Frame } from "../../../src/wire/shapes.js";
import { WORD } from "./stamps.js";
import { hostOf } from "./tab-hosts.js";
import { inputOf } from "./tab-input.js";
import { checkTold, toldMessage } from "./told.js";

/**
 * How a run gets onto a screen: `local`, a LocalAgent; `default`, the same frames as single events through a plain agent
 * with the client's own pipeline; `frames`, unpacked and no further.
 */
export type Way = "local" | "default" | "frames";

export interface ScreenRun {
  readonly key: string;
  /** For `local`: it has the messages already. */
  readonly threadId: string;
  readonly agentId: string;
  readonly way: Way;
  /** Messages on the screen before. */
  readonly messages: number;
  readonly n: number;
  readonly rate: number;
  /** The answer is drawn with each frame of the screen; else it is only looked at. */
  readonly drawn: boolean;
}

const singleEvents = (frame: Frame): readonly BaseEvent[] =>
  frame.type === "chunk" ? frame.chunk.entries.flatMap(unpackEntry) : [];

class PlainAgent extends AbstractAgent {
  constructor(
    threadId: string,
    initialMessages: Message[],
    private readonly frames$: (input: RunAgentInput) => Observable<Frame>,
  ) {
    super({ threadId, initialMessages });
  }

  override run(input: RunAgentInput): Observable<BaseEvent> {
    return this.frames$(input).pipe(mergeMap(singleEvents));
  }
}

/** Shows the messages of a chat, the last of them as it grows. */
class Screen {
  private readonly answer = document.createElement("p");
  private text = "";
  private asked = false;

  constructor(
    messages: number,
    private readonly drawn: boolean,
  ) {
    const said = Array.from({ length: drawn ? messages : 0 }, (_, i) => {
      const paragraph = document.createElement("p");
      paragraph.textContent = toldMessage(i).content;
      return paragraph;
    });
    document.body.replaceChildren(...said, this.answer);
  }

  show(text: string): void {
    this.text = text;
    if (!this.drawn || this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    this.asked = false;
    this.answer.textContent = this.text;
    // So that a draw, and not only the text, is what every way pays.
    this.answer.scrollIntoView({ block: "end" });
  }

  async settled(): Promise<string> {
    if (!this.drawn) return this.text;
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    return this.answer.textContent ?? "";
  }
}

function runByFrames({ key, threadId, agentId, n, rate }: ScreenRun, show: (text: string) => void): Promise<void> {
  const request = { threadId, agentId, input: inputOf(threadId, crypto.randomUUID(), { n, rate }) };
  let text = "";
  return new Promise((resolve, reject) => {
    runFrames(hostOf(key).link, request, () => undefined)
      .pipe(
        mergeMap(singleEvents),
        tap((event) => {
          if ("delta" in event) show((text += String(event.delta)));
        }),
      )
      .subscribe({ complete: resolve, error: reject });
  });
}

let prepared:
  { readonly run: ScreenRun; readonly agent: AbstractAgent | undefined; readonly screen: Screen } | undefined;

/** What the bench asks of a tab whose main thread it measures: all that is not the run happens before. */
export const screenCalls = {
  async prepareScreen(run: ScreenRun): Promise<void> {
    const { key, threadId, agentId, way, messages } = run;
    const { runtime, link } = hostOf(key);
    const screen = new Screen(messages, run.drawn);
    let agent: AbstractAgent | undefined;
    if (way === "local") {
      agent = runtime.agent(agentId, { threadId });
      await agent.connectAgent();
    } else if (way === "default") {
      const initial = Array.from({ length: messages }, (_, i): Message => toldMessage(i));
      // The host has none of them: it is what this tab does with them that counts.
      agent = new PlainAgent(threadId, initial, (input) =>
        runFrames(link, { threadId, agentId, input: { ...input, messages: [] } }, () => undefined),
      );
    }
    if (agent !== undefined) checkTold(agent.messages, 0, messages);
    await link.linked();
    await screen.settled();
    prepared = { run, agent, screen };
  },

  /** Runs what was prepared until its answer is on the screen. */
  async runScreen(): Promise<void> {
    const { run, agent, screen } = prepared!;
    const { n, rate, messages } = run;
    if (agent === undefined) await runByFrames(run, (text) => screen.show(text));
    else {
      await agent.runAgent(
        { forwardedProps: { n, rate } },
        {
          onMessagesChanged: ({ messages: now }) => {
            const { role, content } = now.at(-1)!;
            if (role === "assistant" && now.length > messages) screen.show(String(content));
          },
        },
      );
      checkTold(agent.messages.slice(0, messages), 0, messages);
    }
    const text = await screen.settled();
    if (text !== WORD.repeat(n)) throw new Error(`text of ${text.length} instead of ${n * WORD.length}`);
  },
};
