import { useEffect, useRef, useState } from "react";
import { useFrontendTool } from "@copilotkit/react-core/v2";
import { z } from "zod";

const seat = z.object({ flight: z.string() });
const payment = z.object({ amount: z.number() });

interface Asked {
  readonly text: string;
  readonly answers: readonly string[];
  readonly give: (answer: string) => void;
}

/** Tools whose handlers open a dialog of the page: in one tab, and in another one if that tab is closed. */
export function Asking() {
  const [asked, setAsked] = useState<Asked>();
  const dialog = useRef<HTMLDialogElement>(null);
  const show = () => dialog.current?.open === false && dialog.current.showModal();
  useEffect(() => void (asked === undefined ? dialog.current?.close() : show()), [asked]);

  const ask = (text: string, answers: readonly string[], signal?: AbortSignal): Promise<string> =>
    new Promise((resolve) => {
      const give = (answer: string): void => {
        setAsked(undefined);
        resolve(answer);
      };
      signal?.addEventListener("abort", () => give("stopped"));
      setAsked({ text, answers, give });
    });

  useFrontendTool({
    name: "pickSeat",
    description: "Has the user pick a seat",
    parameters: seat,
    handler: ({ flight }, { signal }) => ask(`Your seat on ${flight}?`, ["12A", "12F"], signal),
  });
  // Not repeatable, see `Messages`.
  useFrontendTool({
    name: "pay",
    description: "Pays an amount in euros",
    parameters: payment,
    handler: ({ amount }, { signal }) => ask(`Pay ${amount} euros?`, ["paid", "not paid"], signal),
  });
  return (
    // Escape would leave the agent without an answer. Browsers let a page prevent it once: the second one closes the dialog.
    <dialog
      ref={dialog}
      aria-label="Question"
      onCancel={(event) => event.preventDefault()}
      onClose={() => void (asked !== undefined && show())}
    >
      <p>{asked?.text}</p>
      {asked?.answers.map((answer) => (
        <button key={answer} onClick={() => asked.give(answer)}>
          {answer}
        </button>
      ))}
    </dialog>
  );
}
