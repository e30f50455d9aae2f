import { Lazy } from "../../platform/lazy.js";

/** The packages of NATS, loaded at their first use. */
export interface Nats {
  readonly core: typeof import("@nats-io/nats-core");
  readonly jetstream: typeof import("@nats-io/jetstream");
}

export const packages = new Lazy<Nats>(async () => {
  const [core, jetstream] = await Promise.all([import("@nats-io/nats-core"), import("@nats-io/jetstream")]);
  return { core, jetstream };
});
