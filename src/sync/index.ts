/**
 * Devices in step: threads that several devices of a person or a team share over NATS JetStream, or another engine.
 *
 * @module ag-ui-local-runtime/sync
 */
export { natsSpace, type NatsCredentials, type NatsSpaceOptions } from "./nats/nats-space.js";
export type { NewPlace, Space, SpaceFrame, SpacePlace, SpaceState } from "./space.js";
export { SpaceOffline } from "./space.js";
export type { SyncCredentials, SyncOptions } from "./options.js";
export type { OnlineDevice, SyncState } from "../wire/shapes.js";
export type { Clock } from "../platform/clock.js";
export { RunnerError, type RunnerErrorCode, type RunnerErrorDetails } from "../run/errors.js";
