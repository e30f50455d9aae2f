// What every contestant shows alike: a memoised component for each message, and how often each was rendered.
import { memo, useLayoutEffect, type ReactNode } from "react";

export const counted = { list: 0, messages: 0 };

export const Line = memo(function Line({ role, text }: { readonly role: string; readonly text: string }): ReactNode {
  useLayoutEffect(() => void counted.messages++);
  return (
    <p>
      {role}: {text}
    </p>
  );
});

/** What a contestant tells the stage in each render. */
export interface Shown {
  readonly isRunning: boolean;
  readonly messages: readonly { readonly id: string; readonly role: string; readonly text: string }[];
  readonly send: (text: string) => Promise<unknown>;
}

let shown: Shown | undefined;
let look = (): void => undefined;

/** Draws what the contestant shows, and lets the bench see it. */
export function Stage(now: Shown): ReactNode {
  useLayoutEffect(() => {
    counted.list++;
    shown = now;
    look();
  });
  return now.messages.map(({ id, role, text }) => <Line key={id} role={role} text={text} />);
}

/** Resolves in the commit that first shows it. */
export const until = (isSo: (now: Shown) => boolean): Promise<Shown> =>
  new Promise((resolve) => {
    look = () => void (shown !== undefined && isSo(shown) && resolve(shown));
    look();
  });

/** Asks as a person does who sees what is shown. */
export const send = (text: string): Promise<unknown> => shown!.send(text);
