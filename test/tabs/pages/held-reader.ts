import { reader as real } from "../../../demo/reader/reader.js";
import { held } from "./held.js";

export const reader: typeof real = (input, context, tools) => held(input, context, real(input, context, tools));
