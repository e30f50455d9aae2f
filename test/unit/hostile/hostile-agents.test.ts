import { PRESETS } from "../runner/kit.js";
import { testHostileAgents } from "./hostile-agents.js";

for (const [name, make] of PRESETS) testHostileAgents(name, 300, () => make());
