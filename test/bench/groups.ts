import { attach } from "./attach.js";
import { bodies } from "./bodies.js";
import { checkpoints } from "./checkpoints.js";
import type { Context } from "./context.js";
import { counts } from "./counts.js";
import { devices } from "./devices.js";
import { encryption } from "./encryption.js";
import { faults } from "./faults.js";
import { firstAttach } from "./first-attach.js";
import { latency } from "./latency.js";
import { liveAttach } from "./live-attach.js";
import { models } from "./models.js";
import { perRequest } from "./per-request.js";
import { pipeline } from "./pipeline.js";
import { recovery } from "./recovery.js";
import { renders } from "./renders.js";
import { runStart } from "./run-start.js";
import { runners } from "./runners.js";
import { screen } from "./screen.js";
import { stream } from "./stream.js";
import { threads } from "./threads.js";
import { waiting } from "./waiting.js";
import { where } from "./where.js";

export const GROUPS: Readonly<Record<string, (context: Context) => Promise<void>>> = {
  pipeline,
  stream,
  where,
  latency,
  "run-start": runStart,
  attach,
  "live-attach": liveAttach,
  "first-attach": firstAttach,
  screen,
  renders,
  models,
  faults,
  recovery,
  waiting,
  runners,
  threads,
  checkpoints,
  encryption,
  devices,
  bodies,
  "per-request": perRequest,
  counts,
};
