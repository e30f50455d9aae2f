// A page in which somebody asks a model: when what of its answer is in the page.
import type { ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { stamp } from "../pages/stamps.js";
import { send, until, type Shown } from "./shown.js";

/** When an answer was in the page, by its own clock. */
export interface Answered {
  readonly asked: number;
  readonly first: number;
  readonly last: number;
  /** Its length. */
  readonly length: number;
}

const answerIn = ({ messages }: Shown): string => (messages.at(-1)?.role === "assistant" ? messages.at(-1)!.text : "");

/** Puts the contestant into the page, and what the bench calls. @param contestant is given the model's address */
export function performModel(contestant: (url: string) => ReactNode): void {
  let answering: Promise<Answered> | undefined;
  const models = {
    now: stamp,

    async open(url: string): Promise<void> {
      createRoot(document.body.appendChild(document.createElement("main"))).render(contestant(url));
      await until(() => true);
    },

    /** Asks; does not wait for the answer. */
    ask(): void {
      answering = (async () => {
        const asked = stamp();
        send("Go on").catch(() => undefined);
        await until(({ isRunning }) => isRunning);
        await until((now) => answerIn(now) !== "");
        const first = stamp();
        const { length } = answerIn(await until(({ isRunning }) => !isRunning));
        return { asked, first, last: stamp(), length };
      })();
    },

    answered: (): Promise<Answered> => answering!,
  };
  Object.assign(globalThis, { models });
}

export interface ModelStage {
  readonly models: {
    now(): number;
    open(url: string): Promise<void>;
    ask(): void;
    answered(): Promise<Answered>;
  };
}
