import "fake-indexeddb/auto";
import type { A2UIOptions } from "ag-ui-local-runtime/runtime";
import { defineAgent } from "ag-ui-local-runtime/worker";
import { expect, test, vi } from "vitest";
import { describeA2UI } from "./integrations/a2ui.suite.js";
import { inputOf, served } from "./integrations/kit.js";

describeA2UI("a2ui, in Node");

const silent = defineAgent(async function* () {});

test("the package is loaded at the first run that uses it, once", async () => {
  const use = vi.fn<A2UIOptions["use"]>(() => import("@ag-ui/a2ui-middleware"));
  const { events, fetch } = served({ agents: { silent, other: silent }, a2ui: { use, agents: ["silent"] } });
  await (await fetch("/info")).text();
  await events("/agent/other/run", inputOf("o", "r"));
  expect(use).not.toHaveBeenCalled();
  await Promise.all(["a", "b"].map((threadId) => events("/agent/silent/run", inputOf(threadId, "r"))));
  await events("/agent/silent/run", inputOf("c", "r"));
  expect(use).toHaveBeenCalledTimes(1);
});

test("options without a way to load the package are refused at once", () => {
  // As JavaScript may.
  const a2ui = { injectA2UITool: true } as unknown as A2UIOptions;
  expect(() => served({ agents: { silent }, a2ui })).toThrow(/a2ui\.use must be a function/);
});

test.each([
  [{}, { a2uiEnabled: true, a2ui: { enabled: true } }],
  [{ agents: ["silent"] }, { a2uiEnabled: true, a2ui: { enabled: true, agents: ["silent"] } }],
  [{ enabled: false }, { a2uiEnabled: false }],
])("/info says of %j: %j", async (options, said) => {
  const use: A2UIOptions["use"] = () => import("@ag-ui/a2ui-middleware");
  const { fetch } = served({ agents: { silent }, a2ui: { use, ...options } });
  const { a2uiEnabled, a2ui } = (await (await fetch("/info")).json()) as Record<string, unknown>;
  expect({ a2uiEnabled, ...(a2ui !== undefined && { a2ui }) }).toEqual(said);
});
