import { WAYS } from "../runtime/ways.js";

/** The ways in whose paths say what is asked for: recipes look at paths. */
export const ROUTED = WAYS.filter((way) => way.path("/info") === "/info");

/** The way in where everything comes to one path. */
export const ONE_ENDPOINT = WAYS.find((way) => way.path("/info") !== "/info")!;
