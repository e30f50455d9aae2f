import { render } from "lit/html.js";
import type { App } from "./app.js";
import type { Focus } from "./feedback.js";
import { page } from "./view/page.js";

/** Within so many pixels of the end, a reader counts as reading the newest. */
const NEAR_END = 56;
/** A page in the background gets no frames; it is kept true all the same. */
const NO_FRAME_MS = 250;

interface Beginning {
  readonly firstId: string | undefined;
  readonly earlier: "resting" | "loading" | "failed";
}

/** Renders the app once a frame, keeps `<html data-…>` true, scrolls and moves the focus. */
export class Screen {
  #due = false;
  #focus: Focus | undefined;
  #atEnd = true;
  #threadId: string | undefined;
  readonly #resized = new ResizeObserver(() => this.#keepEnd());
  #log: HTMLElement | null = null;
  #scrollTop = 0;
  /** What stood at the beginning of the conversation. */
  #beginning: Beginning = { firstId: undefined, earlier: "resting" };

  constructor(
    private readonly app: App,
    private readonly root: HTMLElement,
  ) {}

  start(): void {
    this.app.changed = () => {
      this.#reflect();
      this.#schedule();
    };
    this.app.focus = (target) => {
      this.#focus = target;
      // Who acts wants to see what comes of it.
      if (target === "composer") this.#atEnd = true;
      this.#schedule();
    };
    for (const query of ["(min-width: 1200px)", "(min-width: 760px)"]) {
      matchMedia(query).addEventListener("change", () => this.#schedule());
    }
  }

  /** Shows the newest message and stays with it. */
  readonly toEnd = (): void => {
    this.#atEnd = true;
    this.#keepEnd();
    this.#focusOn("conversation");
    this.#schedule();
  };

  #schedule(): void {
    if (this.#due) return;
    this.#due = true;
    const controller = new AbortController();
    const draw = (): void => {
      if (controller.signal.aborted) return;
      controller.abort();
      this.#due = false;
      this.#draw();
    };
    requestAnimationFrame(draw);
    setTimeout(draw, NO_FRAME_MS);
  }

  #reflect(): void {
    const { dataset } = document.documentElement;
    dataset.thread = this.app.chat.now.status;
    dataset.runState = this.app.chat.isRunning ? "running" : "idle";
    const { status } = this.app;
    if (status.is === "connected") {
      dataset.host = status.host;
      dataset.durability = status.durability;
    } else {
      delete dataset.host;
      delete dataset.durability;
    }
  }

  #draw(): void {
    const { app } = this;
    const { threadId, messages, earlier } = app.chat.now;
    const was = this.#beginning;
    const rest = app.chat.earlierFailure === undefined ? "resting" : "failed";
    const now: Beginning = { firstId: messages[0]?.id, earlier: earlier === "loading" ? "loading" : rest };
    this.#beginning = now;
    // Earlier messages come in above what is being read. So does why they did not come, but that is to be seen.
    const moves = now.firstId !== was.firstId || (now.earlier !== was.earlier && now.earlier !== "failed");
    let keepPlace: (() => void) | undefined;
    if (this.#threadId !== threadId) {
      this.#threadId = threadId;
      this.#atEnd = true;
      // The next one may be empty, and does not begin where this one was left.
      this.#scrollTop = 0;
      this.#log?.scrollTo(0, 0);
    } else if (moves) keepPlace = this.#placeOfReading();
    const focused = document.activeElement;
    const place = focused?.closest("#threads, #conversation, .thread-bar, .undo");
    render(page(app, { atEnd: this.#atEnd, toEnd: this.toEnd }), this.root);
    keepPlace?.();
    // Who asked for earlier messages wants to see them, not the newest.
    if (keepPlace && was.earlier === "loading") this.#atEnd = this.#isNearEnd();
    // A button that is gone leaves the focus nowhere.
    if (focused && !focused.isConnected) this.#focus ??= this.#nextTo(place);
    // One that moved to another place of its list has lost it.
    if (focused instanceof HTMLElement && focused.isConnected && document.activeElement === document.body)
      focused.focus({ preventScroll: true });
    document.title = `${app.chat.isRunning ? "● " : ""}${app.title} · ${app.agent.name}`;

    const log = document.querySelector<HTMLElement>("#conversation");
    if (log !== this.#log) {
      this.#resized.disconnect();
      this.#log = log;
      if (log) {
        log.addEventListener("scroll", this.#scrolled, { passive: true });
        this.#resized.observe(log);
      }
    }
    this.#keepEnd();
    if (this.#focus !== undefined) {
      this.#focusOn(this.#focus);
      this.#focus = undefined;
    }
  }

  /** Where the focus goes from what is no more. Not into a text field after a deletion: there Ctrl + Z undoes letters. */
  #nextTo(place: Element | null | undefined): Focus {
    if (!place) return "composer";
    return place.id === "threads" || this.app.threadsOpen ? "threads" : "conversation";
  }

  readonly #scrolled = (): void => {
    const log = this.#log;
    if (!log) return;
    const up = log.scrollTop < this.#scrollTop;
    this.#scrollTop = log.scrollTop;
    // Only who scrolls up leaves the end: a narrower page is longer, and scrolls by itself.
    const atEnd = this.#isNearEnd() || (this.#atEnd && !up);
    if (atEnd === this.#atEnd) return;
    this.#atEnd = atEnd;
    this.#schedule();
  };

  #isNearEnd(): boolean {
    const log = this.#log;
    return !log || log.scrollHeight - log.scrollTop - log.clientHeight < NEAR_END;
  }

  /** Scrolls what stands at the top of the conversation now to where it is now. */
  #placeOfReading(): (() => void) | undefined {
    const log = this.#log;
    if (!log) return undefined;
    const { top } = log.getBoundingClientRect();
    // Not the messages themselves: the byline of the first one goes when another one of the agent comes before it.
    const anchor = [...log.querySelectorAll(".message > :not(.byline)")].find(
      (part) => part.getBoundingClientRect().bottom > top,
    );
    if (!anchor) return undefined;
    const before = anchor.getBoundingClientRect().top;
    return () => {
      if (!anchor.isConnected) return;
      log.scrollTop += anchor.getBoundingClientRect().top - before;
      this.#scrollTop = log.scrollTop;
    };
  }

  #keepEnd(): void {
    const log = this.#log;
    // The empty state is read from its beginning.
    if (this.#atEnd && log?.querySelector(".messages")) {
      log.scrollTop = log.scrollHeight;
      this.#scrollTop = log.scrollTop;
    }
  }

  #focusOn(target: Focus): void {
    const selector = {
      composer: "#message",
      conversation: "#conversation",
      stop: "#stop",
      panel: "#documents",
      threads: "#threads",
      search: "#search",
      edit: "#edit",
      "panel-toggle": "#documents-toggle",
      "threads-toggle": "#threads-toggle",
      "second-toggle": "#second-toggle",
    }[target];
    // What is to be changed may stand above what is in view.
    const element = document.querySelector<HTMLElement>(selector);
    element?.focus({ preventScroll: target !== "edit" });
    // Where somebody goes on writing.
    if (target === "edit" && element instanceof HTMLTextAreaElement) element.selectionStart = element.value.length;
  }
}
