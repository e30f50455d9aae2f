import { research as real } from "../../../demo/graph/research.js";
import { held } from "./held.js";

export const research: typeof real = (input, context, tools) => held(input, context, real(input, context, tools));
