import { onTestFinished } from "vitest";
import { nextTask } from "../../../src/platform/clock.js";
import { answerRelayed } from "../../../src/wire/answer-relayed.js";
import { relayResponse } from "../../../src/wire/relay-response.js";
import type { RelayControl, RelayHandler } from "../../../src/wire/relay.js";
import { toRelayed } from "../../../src/wire/relayed-request.js";

/** What tells of a host in these tests. */
export const HOST = { hostId: "h", dbName: "db" };

export const requestOf = (path = "/run", init?: RequestInit): Request => new Request(`http://site.test${path}`, init);

/** Everything that is under way arrives. */
export async function settled(): Promise<void> {
  for (let task = 0; task < 60; task++) await nextTask();
}

/** A request on its way to `handle` and back, over real ports. */
export async function relayed(handle: RelayHandler, request = requestOf(), basePath = "") {
  const { port1: asker, port2: host } = new MessageChannel();
  const hostEnds = new AbortController();
  const asking = new AbortController();
  const heads: unknown[] = [];
  let ends = 0;
  const response = relayResponse(asker, asking.signal, {
    onHead: (head) => void heads.push(head),
    onSettled: () => void ends++,
  });
  response.catch(() => undefined);
  const answered = answerRelayed(await toRelayed(request, basePath), host, handle, {
    ...HOST,
    signal: hostEnds.signal,
  });
  onTestFinished(() => {
    asking.abort();
    hostEnds.abort();
  });
  return { response, answered, asking, hostEnds, heads, ends: () => ends };
}

/** An asker that says what it is told to, to a host whose `body` it takes nothing of. */
export async function mute(handle: RelayHandler) {
  const { port1: asker, port2: host } = new MessageChannel();
  const frames: { readonly type: string; readonly bytes?: Uint8Array }[] = [];
  asker.onmessage = ({ data }) => void frames.push(data);
  const answered = answerRelayed(await toRelayed(requestOf(), ""), host, handle, {
    ...HOST,
    signal: new AbortController().signal,
  });
  const say = (word: RelayControl | unknown): void => asker.postMessage(word);
  onTestFinished(() => {
    say({ type: "abort" });
    asker.close();
  });
  return { answered, frames, say, bodies: () => frames.filter(({ type }) => type === "body").length };
}

/** A body of chunks that are made as they are asked for. */
export function counting(chunk: (n: number) => Uint8Array | undefined) {
  let made = 0;
  let cancelled = false;
  const stream = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        const bytes = chunk(made++);
        if (bytes === undefined) controller.close();
        else controller.enqueue(bytes);
      },
      cancel: () => void (cancelled = true),
    },
    { highWaterMark: 0 },
  );
  return { stream, made: () => made, cancelled: () => cancelled };
}
