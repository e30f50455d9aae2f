/** Something that the person should read; `failure` in the colours of one. */
export interface Notice {
  readonly kind: "note" | "failure";
  readonly text: string;
}

/** What the screen shall do once, after the next render. */
export type Focus =
  | "composer"
  | "conversation"
  | "stop"
  | "panel"
  | "threads"
  | "search"
  | "edit"
  | "panel-toggle"
  | "threads-toggle"
  | "second-toggle";

/** What the page says to the person, and where it puts the focus. It knows nothing of elements. */
export class Feedback {
  notice: Notice | undefined;
  /** For screen readers: one thing that just happened. */
  announcement = "";

  /** Set by the screen. */
  changed: () => void = () => undefined;
  focus: (target: Focus) => void = () => undefined;

  announce(text: string): void {
    // The same words twice are news as well.
    this.announcement = this.announcement === text ? `${text}\u00a0` : text;
    this.changed();
  }

  fail(text: string): void {
    this.notice = { kind: "failure", text };
    this.changed();
  }

  dismiss(): void {
    this.notice = undefined;
    this.changed();
  }

  /** Does it, and says why it failed. */
  async try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.fail(messageOf(error));
    }
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
