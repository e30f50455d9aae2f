import { InMemoryAgentRunner } from "ag-ui-local-runtime";
import { describeContract } from "./contract.suite.js";
import { expressWay, honoWay } from "./http-ways.js";
import { contractRuntime } from "./in-process.js";

const inMemory = () => contractRuntime({ runner: new InMemoryAgentRunner({ store: "isolated", stopGraceMs: 50 }) });

describeContract("a handler below a path in Express", () => expressWay(inMemory()));

describeContract("a handler in Hono", () => honoWay(inMemory()));

const PARSERS_OWN = "the parser in front of the runtime answers it";

describeContract("a handler behind a parser in Express", () => expressWay(inMemory(), { parses: true }), {
  skip: Object.fromEntries(
    [
      ...["run", "connect", "suggest"].flatMap((work) => [
        ...["no JSON", "null", "a text"].map((what) => `${work} refuses a body with ${what}`),
        `${work} refuses a compressed body`,
      ]),
      "a stop with a number is refused and stops nothing",
      "a stop of no JSON is refused",
    ].map((name) => [name, PARSERS_OWN]),
  ),
});
