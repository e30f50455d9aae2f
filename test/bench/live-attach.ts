import { median, ratio } from "./beside.js";
import type { Context } from "./context.js";
import { figure, inTurn } from "./figures.js";
import { freshHost, HOST } from "./lab.js";

/** Events that a reader with a cursor near the end lacks. */
const LACKING = 10;

/** A database's other host. */
const OTHER = "other";

/** Attaching in the middle of a run. */
export async function liveAttach({ lab, quick, samples, figures, show }: Context): Promise<void> {
  for (const words of quick ? [1_000, 20_000] : [1_000, 100_000]) {
    const host = freshHost();
    const runs = await lab.tab(host);
    const threadId = crypto.randomUUID();
    const cursor = await runs.startLive(HOST, threadId, words);
    const near = { ...cursor, seq: cursor.seq - LACKING };
    const reads = await lab.tab(host);
    await reads.connect(OTHER, { ...host, host: OTHER });
    const values = await inTurn(quick ? samples : Math.max(30, samples), {
      frames: () => reads.joinByFrames(HOST, threadId, words),
      agent: () => reads.joinByAgent(HOST, threadId, words),
      near: () => reads.joinByFrames(HOST, threadId, words, near),
      otherFrames: () => reads.joinByFrames(OTHER, threadId, words),
      otherAgent: () => reads.joinByAgent(OTHER, threadId, words),
      otherNear: () => reads.joinByFrames(OTHER, threadId, words, near),
      // A host that has not read any of it before.
      fresh: async () => {
        const config = { ...host, host: `fresh ${crypto.randomUUID()}` };
        await reads.connect(config.host, config);
        const ms = await reads.joinByAgent(config.host, threadId, words);
        await reads.disconnect(config.host);
        await lab.endHost(config);
        return ms;
      },
    });
    await runs.endLive(HOST, threadId);
    await lab.closeTabs();
    const row = (name: string, times: readonly number[], ...beside: readonly string[]): void => {
      const group = `live-attach: a live run with ${words.toLocaleString("en-US")} deltas so far`;
      figures.push(figure(group, name, "ms", times, beside.join(", ")));
    };
    row("exact text in frames, same host", values.frames);
    row("exact text in a LocalAgent, same host", values.agent);
    row(`${LACKING} events behind, in frames, same host`, values.near);
    const besideSame = ratio(median(values.otherAgent), median(values.agent), "same host");
    row("exact text in frames, another host's run", values.otherFrames);
    row("exact text in a LocalAgent, another host's run", values.otherAgent, ...besideSame);
    row(`${LACKING} events behind, in frames, another host's run`, values.otherNear);
    row("exact text in a LocalAgent, another host's run, fresh host", values.fresh);
    show();
  }
}
