import { expect } from "vitest";
import type { Tab } from "../../../test/tabs/driver/browser.js";

/** What is shown in the middle of the page. */
const LOG = "main";

/** The page of the demo, as a user works with it. */
export class Chat {
  constructor(readonly tab: Tab) {}

  /** Writes into CopilotKit's field; Enter sends. */
  async send(text: string): Promise<void> {
    await this.tab.type("textbox", "Type a message...", `${text}\n`);
  }

  async shows(text: string): Promise<void> {
    await this.tab.waitFor(
      (selector, wanted) => document.querySelector<HTMLElement>(selector)?.innerText.includes(wanted),
      LOG,
      text,
    );
  }

  async showsTimes(text: string, times: number): Promise<void> {
    await this.tab.waitFor(
      (selector, wanted, count) =>
        (document.querySelector<HTMLElement>(selector)?.innerText.split(wanted).length ?? 0) - 1 === count,
      LOG,
      text,
      times,
    );
  }

  async showsNoMore(text: string): Promise<void> {
    await this.tab.waitFor(
      (selector, gone) => !document.querySelector<HTMLElement>(selector)?.innerText.includes(gone),
      LOG,
      text,
    );
  }

  /** Waits until no run is live, as CopilotKit's chat says it. */
  async isIdle(): Promise<void> {
    await this.tab.waitFor(
      () => document.querySelector("[data-copilot-running]")?.getAttribute("data-copilot-running") === "false",
    );
  }

  /** The messages, without what surrounds them. */
  messages(): Promise<string> {
    return this.tab.evaluate(
      () => document.querySelector<HTMLElement>("[data-testid=copilot-message-list]")?.innerText ?? "",
    );
  }

  /** The run of each answer, see `run-marks.tsx`. */
  runs(): Promise<readonly string[]> {
    return this.tab.evaluate(() =>
      [...document.querySelectorAll<HTMLElement>("[data-run]")].map(
        ({ dataset }) => `${dataset["message"]} ${dataset["run"]}`,
      ),
    );
  }

  /** Waits until both show the same messages, of which there are some. A tab in the background paints late. */
  async showsTheSameAs(other: Chat): Promise<void> {
    await expect
      .poll(
        async () => {
          const [shown, wanted] = await Promise.all([this.messages(), other.messages()]);
          return shown !== "" && shown === wanted ? "the same" : { shown, wanted };
        },
        { timeout: 60_000 },
      )
      .toBe("the same");
  }

  /** A click where the element is by then: the chat scrolls while messages come. */
  async press(selector: string): Promise<void> {
    await this.tab.bringToFront();
    await this.tab.waitFor((wanted) => {
      const found = [...document.querySelectorAll<HTMLButtonElement>(wanted)].at(-1);
      if (found === undefined || found.disabled) return false;
      found.click();
      return true;
    }, selector);
  }

  async hasNo(selector: string): Promise<void> {
    await this.tab.waitFor((unwanted) => document.querySelector(unwanted) === null, selector);
  }

  stop(): Promise<void> {
    return this.press("[data-testid=copilot-send-button]");
  }

  /** Opens a thread of the list by its title. */
  open(title: string): Promise<void> {
    return this.press(`.agui-thread-title[title=${JSON.stringify(title)}]`);
  }

  async lists(title: string): Promise<void> {
    await this.tab.waitFor(
      (wanted) =>
        [...document.querySelectorAll(".agui-thread-title")].some(({ textContent }) => textContent === wanted),
      title,
    );
  }

  async listsNoMore(title: string): Promise<void> {
    await this.tab.waitFor(
      (gone) => ![...document.querySelectorAll(".agui-thread-title")].some(({ textContent }) => textContent === gone),
      title,
    );
  }
}
