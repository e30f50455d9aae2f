import { block } from "./scripted-agents.js";
import { ownName } from "./worker-name.js";

/** Lets tests end or hinder this worker from within, in every engine: `{ end: <name> }`, `{ block: <name>, ms }`. */
export function obeyLab(): void {
  const control = new BroadcastChannel("lab-control");
  control.onmessage = ({ data }: MessageEvent<{ end?: string; block?: string; ms?: number }>) => {
    if (data.block === ownName()) block(data.ms ?? 1_000);
    if (data.end !== ownName()) return;
    control.postMessage({ ended: ownName() });
    self.close();
  };
}
