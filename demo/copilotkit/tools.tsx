import { useComponent, useFrontendTool, useHumanInTheLoop, useRenderTool } from "@copilotkit/react-core/v2";
import { z } from "zod";

const weather = z.object({ city: z.string() });
const colour = z.object({ colour: z.string() });
const booking = z.object({ flight: z.string(), price: z.number() });
const chart = z.object({ title: z.string(), values: z.array(z.number()) });

/** A part of the arguments may be there while they stream. */
function Chart({ title, values = [] }: Partial<z.infer<typeof chart>>) {
  return (
    <figure className="card">
      <figcaption>{title}</figcaption>
      <svg viewBox={`0 0 ${Math.max(values.length, 1) * 12} 50`} role="img" aria-label={`Chart: ${values.join(", ")}`}>
        {values.map((value, at) => (
          <rect key={at} x={at * 12} y={50 - value * 5} width="10" height={value * 5} />
        ))}
      </svg>
    </figure>
  );
}

/** What the agent may call, and how calls look in the chat. */
export function Tools({ setColour }: { setColour: (colour: string) => void }) {
  // The agent's own tool: it runs in the worker, the page draws it.
  useRenderTool({
    name: "getWeather",
    parameters: weather,
    render: ({ status, parameters, result }) => (
      <p className="card">
        Weather in {parameters.city ?? "…"}: {status === "complete" ? degreesOf(result) : "looking …"}
      </p>
    ),
  });
  // A tool of the page: it runs here, and its answer goes back to the agent.
  useFrontendTool({
    name: "setColour",
    description: "Sets the background colour of the page",
    parameters: colour,
    handler: async (args) => {
      setColour(args.colour);
      return `the background is ${args.colour}`;
    },
    render: ({ args }) => <p className="card">Colour: {args.colour ?? "…"}</p>,
  });
  useComponent({ name: "showChart", description: "Shows numbers", parameters: chart, render: Chart, followUp: false });
  useHumanInTheLoop({
    name: "confirmBooking",
    description: "Asks the user whether to book",
    parameters: booking,
    render: ({ args, status, respond, result }) => (
      <div className="card" role="group" aria-label="Booking">
        <p>
          Flight {args.flight} for {args.price} euros
        </p>
        {status === "executing" && respond && (
          <>
            <button onClick={() => void respond("booked")}>Book</button>
            <button onClick={() => void respond("declined")}>Decline</button>
          </>
        )}
        {result && <p>Answer: {result}</p>}
      </div>
    ),
  });
  return null;
}

function degreesOf(result: string): string {
  const { degrees, sky } = JSON.parse(result) as { degrees: number; sky: string };
  return `${degrees} degrees, ${sky}`;
}
