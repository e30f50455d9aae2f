/** What the worker of a device is told by its name. */
export interface DeviceSettings {
  readonly dbName: string;
  /** Addresses of the servers; none: the device is on its own. */
  readonly servers: readonly string[];
  readonly space: string;
  readonly device: string;
  /** Its database, and what it shares, is encrypted: locked until a page unlocks it. */
  readonly isEncrypted?: boolean;
  /** A number: what was opened, and at most so many threads. */
  readonly keep?: "all" | "opened" | number;
}

export const deviceWorkerName = ({ dbName, servers, space, device, isEncrypted, keep }: DeviceSettings): string =>
  [dbName, servers.join(","), space, device, isEncrypted === true ? "encrypted" : "", keep ?? "all"].join("#");

export function deviceSettings(name: string): DeviceSettings {
  const [dbName = "", servers = "", space = "", device = "", encrypted = "", keep] = name.split("#");
  const isEncrypted = encrypted !== "";
  return {
    dbName,
    servers: servers === "" ? [] : servers.split(","),
    space,
    device,
    isEncrypted,
    keep: keep === "opened" ? keep : keep === undefined || keep === "all" ? "all" : Number(keep),
  };
}

/** Asks the worker of a database what it has loaded, and brings the answer. */
export const loadedChannel = (dbName: string): string => `sync-loaded ${dbName}`;
