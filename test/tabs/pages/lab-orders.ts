/** What a test asks of the worker of this name: that it ends, or that it lets nothing else run. */
export type LabOrder = { readonly end: string } | { readonly block: string; readonly until: BlockedUntil };
/** The server is asked for it; or the worker is ended from outside, which a request that it waits for would hinder. */
export type BlockedUntil = "let go" | "ended";
/** It does so now. */
export interface LabAnswer {
  readonly obeys: string;
}

export const LAB_CHANNEL = "lab-control";

/** What a blocked worker asks for, without an answer until a test asks for the other one. */
export const BLOCKED_PATH = "/lab-blocked";
export const GO_ON_PATH = "/lab-go-on";

/** Gives a worker this order; resolves once it has said that it obeys. */
export function obeyed(order: LabOrder): Promise<void> {
  const worker = "end" in order ? order.end : order.block;
  const control = new BroadcastChannel(LAB_CHANNEL);
  return new Promise((resolve) => {
    control.onmessage = ({ data }: MessageEvent<Partial<LabAnswer>>) => {
      if (data.obeys !== worker) return;
      control.close();
      resolve();
    };
    control.postMessage(order);
  });
}
