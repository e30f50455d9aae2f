import { BLOCKED_PATH, LAB_CHANNEL, type LabAnswer, type LabOrder } from "./lab-orders.js";
import { ownName } from "./worker-name.js";

/** A request that the worker waits for with all that it does; the server answers it when the test says so. */
function blockUntilLetGo(): void {
  const request = new XMLHttpRequest();
  request.open("GET", `${BLOCKED_PATH}?${encodeURIComponent(ownName())}`, false);
  request.send();
}

/** Lets tests end or hinder this worker from within, in every engine. */
export function obeyLab(): void {
  const control = new BroadcastChannel(LAB_CHANNEL);
  control.onmessage = ({ data }: MessageEvent<LabOrder | LabAnswer>) => {
    const answer: LabAnswer = { obeys: ownName() };
    if ("block" in data && data.block === ownName()) {
      control.postMessage(answer);
      if (data.until === "let go") blockUntilLetGo();
      else for (;;) continue;
    } else if ("end" in data && data.end === ownName()) {
      control.postMessage(answer);
      self.close();
    }
  };
}
