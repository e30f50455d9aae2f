import { EventType, type MessagesSnapshotEvent } from "@ag-ui/client";
import { filter, firstValueFrom, lastValueFrom, share, takeWhile } from "rxjs";
import { attachFrames, runFrames } from "../../../src/client/frames.js";
import { cursorBehind } from "../../../src/wire/thread-events.js";
import type { Cursor } from "../../../src/run/types.js";
import type { Frame } from "../../../src/wire/shapes.js";
import { inTime } from "./in-time.js";
import { WORD } from "./stamps.js";
import { hostOf } from "./tab-hosts.js";
import { inputOf } from "./tab-input.js";

const AGENT = "hanging";

interface Live {
  readonly runId: string;
  readonly ended: Promise<unknown>;
}

const live = new Map<string, Live>();

const expect = (text: unknown, words: number): void => {
  if (text === WORD.repeat(words)) return;
  throw new Error(`text of ${String(text).length} instead of ${words * WORD.length}, or of another kind`);
};

/** What a frame adds to the text of a run that says one message. */
function textOf(frame: Frame): string {
  if (frame.type === "prelude") {
    const snapshot = frame.events.findLast(({ type }) => type === EventType.MESSAGES_SNAPSHOT);
    return String((snapshot as MessagesSnapshotEvent | undefined)?.messages.at(-1)?.content ?? "");
  }
  if (frame.type !== "chunk") return "";
  return frame.chunk.entries.map(({ event }) => ("delta" in event ? String(event.delta) : "")).join("");
}

/** What the bench asks of a tab about attaching to a run that goes on. Times in ms. */
export const liveCalls = {
  /** Starts a run here that says so many words, and waits. Resolves with the cursor behind them. */
  async startLive(key: string, threadId: string, words: number): Promise<Cursor> {
    const runId = crypto.randomUUID();
    const request = { threadId, agentId: AGENT, input: inputOf(threadId, runId, { n: words }) };
    const frames$ = runFrames(hostOf(key).link, request, () => undefined).pipe(share());
    const ended = lastValueFrom(frames$);
    ended.catch(() => undefined);
    live.set(threadId, { runId, ended });
    let cursor: Cursor | undefined;
    // RUN_STARTED and TEXT_MESSAGE_START stand before the first of them.
    const isLast = (): boolean => cursor?.seq === words + 1;
    const reading$ = frames$.pipe(
      takeWhile((frame) => {
        cursor = cursorBehind(frame, cursor);
        return !isLast();
      }, true),
    );
    await inTime(lastValueFrom(reading$), () => `read up to ${cursor?.seq}`);
    if (!isLast()) throw new Error("the run ended before it had said everything");
    return cursor!;
  },

  async endLive(key: string, threadId: string): Promise<void> {
    const { runId, ended } = live.get(threadId)!;
    live.delete(threadId);
    await hostOf(key).link.call("stop", { threadId, runId });
    await ended;
  },

  /** Attaching a LocalAgent that has nothing yet, to the text of the live run as it is now. */
  async joinByAgent(key: string, threadId: string, words: number): Promise<number> {
    const agent = hostOf(key).runtime.agent(AGENT, { threadId });
    const length = words * WORD.length;
    const begun = performance.now();
    const joining = new Promise<number>((resolve, reject) => {
      agent.subscribe({
        onMessagesChanged: ({ messages }) => {
          if (String(messages.at(-1)?.content ?? "").length >= length) resolve(performance.now() - begun);
        },
        onRunFailed: ({ error }) => reject(error),
      });
    });
    const unfollow = agent.follow();
    const ms = await inTime(joining, () => `text of ${String(agent.messages.at(-1)?.content).length}`);
    expect(agent.messages.at(-1)?.content, words);
    unfollow();
    return ms;
  },

  /**
   * Attaching without an agent, to the frame with the last word.
   *
   * @param after a reader that has everything up to there; absent: one that has nothing
   */
  async joinByFrames(key: string, threadId: string, words: number, after?: Cursor): Promise<number> {
    const { link } = hostOf(key);
    await link.linked();
    const known = after === undefined ? 0 : after.seq - 1;
    let text = "";
    const begun = performance.now();
    const last$ = attachFrames(link, { threadId, after, follow: false }).pipe(
      filter((frame) => (text += textOf(frame)).length >= (words - known) * WORD.length),
    );
    await inTime(firstValueFrom(last$), () => `text of ${text.length}`);
    const ms = performance.now() - begun;
    expect(text, words - known);
    return ms;
  },
};
