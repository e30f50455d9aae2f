import type { AtFailurePoint, FailurePoint } from "../../../src/run/failure-points.js";
import { ownName } from "./worker-name.js";

/** What a test and a worker say to each other on the channel "lab-points". */
export type PointsMessage =
  /** End the worker of this name when it reaches the point for the `nth` time. */
  | { readonly arm: string; readonly point: FailurePoint; readonly nth: number }
  | { readonly armed: string }
  /** The worker of this name ends now. */
  | { readonly reached: string; readonly point: FailurePoint };

/** The hook of a worker that ends itself where a test says. A worker that is started in its place does not. */
export function armedPoints(): AtFailurePoint {
  const channel = new BroadcastChannel("lab-points");
  const say = (message: PointsMessage): void => channel.postMessage(message);
  let armed: { readonly point: FailurePoint; nth: number } | undefined;
  channel.onmessage = ({ data }: MessageEvent<PointsMessage>) => {
    if (!("arm" in data) || data.arm !== ownName()) return;
    armed = { point: data.point, nth: data.nth };
    say({ armed: ownName() });
  };
  return (point) => {
    if (armed?.point !== point || --armed.nth > 0) return undefined;
    say({ reached: ownName(), point });
    self.close();
    // Nothing that waits for it goes on; what does not wait ends with this task.
    return new Promise(() => undefined);
  };
}

/** The page's side of "lab-points". */
export class PointsChannel {
  /** What it has heard. */
  readonly all: PointsMessage[] = [];
  private readonly channel = new BroadcastChannel("lab-points");

  constructor() {
    this.channel.addEventListener("message", ({ data }: MessageEvent<PointsMessage>) => this.all.push(data));
  }

  /** Resolves once the worker is armed. */
  arm(order: Extract<PointsMessage, { arm: string }>): Promise<void> {
    return new Promise((resolve) => {
      const listen = ({ data }: MessageEvent<PointsMessage>): void => {
        if (!("armed" in data) || data.armed !== order.arm) return;
        this.channel.removeEventListener("message", listen);
        resolve();
      };
      this.channel.addEventListener("message", listen);
      this.channel.postMessage(order);
    });
  }
}
