import { installCopilotKit } from "../copilotkit/install.mjs";

/** CopilotKit's packages are installed at the first run of the suite. */
export default function setup() {
  if (installCopilotKit() === undefined) throw new Error("CopilotKit's packages could not be installed");
}
