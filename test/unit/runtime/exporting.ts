import { agentOf, counter } from "../runner/kit.js";

export const poet = agentOf(counter(1));
/** A module that exports this is no agent either. */
export const run = (): void => undefined;
