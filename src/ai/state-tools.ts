import type { JsonPatchOperation } from "@ag-ui/client";
import type { AiTool } from "./options.js";

/** What {@link stateTools} gives. */
export type StateTools = {
  readonly setState: AiTool<{ state: unknown }, string>;
  readonly patchState: AiTool<{ patch: JsonPatchOperation[] }, string>;
};

const PATCH = {
  type: "array",
  items: {
    type: "object",
    properties: {
      op: { enum: ["add", "remove", "replace", "move", "copy", "test"] },
      path: { type: "string", description: "JSON Pointer" },
      from: { type: "string" },
      value: {},
    },
    required: ["op", "path"],
  },
};

/**
 * Tools by which a model writes the thread's state, which the page shows and changes too. Use them with `state: "tell"`.
 *
 * @param schema JSON Schema of the state, for the model
 */
export const stateTools = (schema: Readonly<Record<string, unknown>> = {}): StateTools => ({
  setState: {
    description: "Replaces the shared state",
    parameters: { type: "object", properties: { state: schema }, required: ["state"] },
    execute: ({ state }, run) => {
      // Models forget the wrapper; the schema is only theirs to read.
      if (state === undefined) throw new Error('The arguments must be { "state": … }, with the whole new state');
      run.setState(state);
      return "The state was replaced";
    },
    repeatable: true,
  },
  patchState: {
    description: "Changes the shared state by a JSON Patch (RFC 6902)",
    parameters: { type: "object", properties: { patch: PATCH }, required: ["patch"] },
    execute: ({ patch }, run) => {
      run.patchState(patch);
      return "The state was changed";
    },
  },
});
