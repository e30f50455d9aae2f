import type { LocalAgentRunner } from "../runner/local-agent-runner.js";
import type { SyncOptions } from "./options.js";
import type { Space } from "./space.js";
import { Sync } from "./sync.js";

/** Keeps the runner's log in step with those of other devices, until the runner is closed. */
export async function startSync(runner: LocalAgentRunner, options: SyncOptions): Promise<Sync> {
  const { parts, elsewhere, closed } = runner.joinDevices();
  const sync = new Sync({
    space: await spaceOf(options),
    parts,
    elsewhere,
    deviceName: options.device ?? deviceName(),
    stop: (call) => void runner.stop(call).catch(() => undefined),
  });
  runner.deleted$.subscribe(() => sync.logLost());
  const close = (): void => void sync.close();
  if (closed.aborted) close();
  else closed.addEventListener("abort", close, { once: true });
  return sync;
}

async function spaceOf({ space, servers = [], credentials, replicas }: SyncOptions): Promise<Space> {
  if (typeof space !== "string") return space;
  const { natsSpace } = await import("./nats/nats-space.js");
  return natsSpace({
    servers,
    space,
    ...(credentials !== undefined && { credentials }),
    ...(replicas !== undefined && { replicas }),
  });
}

/** The browser and its system, as far as the browser tells: "Chrome on Windows". */
function deviceName(): string {
  const { userAgentData, userAgent = "" } = navigator as Navigator & {
    readonly userAgentData?: { readonly brands: readonly { readonly brand: string }[]; readonly platform: string };
  };
  const brand = userAgentData?.brands.find((one) => !/not.?a.?brand|chromium/i.test(one.brand))?.brand;
  const browser = brand ?? (/Firefox|Edg|Chrome|Safari/.exec(userAgent)?.[0] || "A device");
  const system = userAgentData?.platform || /Windows|Android|iPhone|iPad|Mac|Linux/.exec(userAgent)?.[0];
  return system === undefined ? browser : `${browser} on ${system}`;
}
