/** What reads, runs and follows threads: one file, which comes with the first agent. See late-streams.ts. */
export { eventsOfFrame } from "../wire/frames.js";
export { cursorBehind, threadEvents } from "../wire/thread-events.js";
export { ThreadFollower } from "./follower.js";
export { attachFrames, runFrames } from "./frames.js";
export { remoteRun } from "./remote-run.js";
export { threadRunAfter } from "./thread-run-after.js";
