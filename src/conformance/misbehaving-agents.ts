import { BREAKING_PROTOCOL } from "./misbehaving/breaking-protocol.js";
import { CARELESS } from "./misbehaving/careless.js";
import { FAILING } from "./misbehaving/failing.js";
import { HARD_TO_STOP } from "./misbehaving/hard-to-stop.js";
import { LEAVING_OPEN } from "./misbehaving/leaving-open.js";

/** Every misbehaving agent of the suite, for your own tests. */
export const MISBEHAVING_AGENTS = [...FAILING, ...LEAVING_OPEN, ...BREAKING_PROTOCOL, ...CARELESS, ...HARD_TO_STOP];
