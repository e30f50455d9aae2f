import { PRESETS } from "../runner/kit.js";
import { quiet, testHostileAgents, TIGHT } from "./hostile-agents.js";

for (const [name, make] of PRESETS) testHostileAgents(name, 200, () => make({ eventLimits: TIGHT, logger: quiet }));
