import { expect, test } from "vitest";
import { isBusy, isListening, nextLife, type RunLife, type RunTransition } from "../../../src/run/life.js";

const LIVES: readonly RunLife[] = [
  { is: "queued" },
  { is: "claiming" },
  { is: "running" },
  { is: "stopping", as: "stopped" },
  { is: "settling", status: "finished" },
  { is: "settled", status: "finished" },
  { is: "refused" },
  { is: "lost" },
];

const TRANSITIONS: readonly RunTransition[] = [
  { to: "wait" },
  { to: "turn" },
  { to: "claimed" },
  { to: "refuse" },
  { to: "stop", as: "errored" },
  { to: "settle", status: "broken" },
  { to: "decide", status: "superseded" },
  { to: "settled" },
  { to: "lose" },
];

/** Every transition that applies; all others change nothing. */
const TABLE: Readonly<Record<string, RunLife>> = {
  "queued turn": { is: "claiming" },
  "queued refuse": { is: "refused" },
  "claiming wait": { is: "queued" },
  "claiming claimed": { is: "running" },
  "claiming refuse": { is: "refused" },
  "running stop": { is: "stopping", as: "errored" },
  "running settle": { is: "settling", status: "broken" },
  "running lose": { is: "lost" },
  "stopping settle": { is: "settling", status: "broken" },
  "stopping lose": { is: "lost" },
  "settling decide": { is: "settling", status: "superseded" },
  "settling settled": { is: "settled", status: "finished" },
  "settling lose": { is: "lost" },
};

test("a life goes on by the named transitions alone", () => {
  const found: Record<string, RunLife> = {};
  for (const life of LIVES) {
    for (const transition of TRANSITIONS) {
      const next = nextLife(life, transition);
      if (next !== undefined) found[`${life.is} ${transition.to}`] = next;
    }
  }
  expect(found).toEqual(TABLE);
});

test("a thread is busy until its run settles; its agent is heard while it runs or is stopping", () => {
  expect(LIVES.filter(isBusy).map(({ is }) => is)).toEqual(["queued", "claiming", "running", "stopping"]);
  expect(LIVES.filter(isListening).map(({ is }) => is)).toEqual(["running", "stopping"]);
});
