import { LAB_CHANNEL, type LabAnswer, type LabOrder } from "./lab-orders.js";
import { block } from "./scripted-agents.js";
import { ownName } from "./worker-name.js";

/** Lets tests end or hinder this worker from within, in every engine. */
export function obeyLab(): void {
  const control = new BroadcastChannel(LAB_CHANNEL);
  control.onmessage = ({ data }: MessageEvent<LabOrder | LabAnswer>) => {
    const answer: LabAnswer = { obeys: ownName() };
    if ("block" in data && data.block === ownName()) {
      control.postMessage(answer);
      block(data.ms);
    } else if ("end" in data && data.end === ownName()) {
      control.postMessage(answer);
      self.close();
    }
  };
}
