import { expectSame, expectThat } from "../../../../src/conformance/expect.js";
import { MAX_BODY_BYTES } from "./contract-agents.js";
import { expectJson, expectRefusal, type ContractBench, type ContractCase } from "./contract-bench.js";

const base64 = (text: string): string => btoa(text);

const recorded = (bench: ContractBench, words: string, mimeType = "audio/webm"): Promise<Response> =>
  bench.post("/transcribe", { audio: base64(words), mimeType });

function formOf(words: string, type: string, field = "audio"): FormData {
  const form = new FormData();
  form.append(field, new File([words], "recording.ogg", { type }));
  return form;
}

const failures = [
  ["without audio", { mimeType: "audio/webm" }, 400, "invalid_request"],
  ["without a type", { audio: base64("x") }, 400, "invalid_request"],
  ["that is no base64", { audio: "%", mimeType: "audio/webm" }, 400, "invalid_request"],
  ["that is a list", [], 400, "invalid_request"],
  ["of another type", { audio: base64("x"), mimeType: "video/mp4" }, 400, "invalid_audio_format"],
  ["that is too long", { audio: base64("x".repeat(MAX_BODY_BYTES)), mimeType: "audio/webm" }, 413, undefined],
] as const;

export const TRANSCRIBE_CASES: readonly ContractCase[] = [
  {
    name: "a recording in base64 is transcribed",
    check: async (bench) => {
      const answer = (await expectJson(await recorded(bench, "hello there"))) as Record<string, unknown>;
      expectSame(
        answer,
        { text: "hello there (audio/webm, 11 bytes)", size: 11, type: "audio/webm" },
        "what was said must be told",
      );
    },
  },
  {
    name: "a recording in a form is transcribed",
    needs: "routes",
    check: async (bench) => {
      const body = formOf("hello", "audio/ogg");
      const answer = (await expectJson(await bench.way.request("/transcribe", { method: "POST", body }))) as object;
      expectSame(answer, { text: "hello (audio/ogg, 5 bytes)", size: 5, type: "audio/ogg" }, "it must be told");
    },
  },
  {
    name: "a form without a recording is refused",
    needs: "routes",
    check: async (bench) => {
      const body = formOf("hello", "audio/ogg", "other");
      await expectRefusal(await bench.way.request("/transcribe", { method: "POST", body }), 400, {
        error: "invalid_request",
        retryable: false,
      });
    },
  },
  ...failures.map(([what, body, status, error]): ContractCase => ({
    name: `a recording ${what} is refused`,
    check: async (bench) => {
      await expectRefusal(await bench.post("/transcribe", body), status, error === undefined ? {} : { error });
    },
  })),
  ...(
    [
      ["refuse", 401, { error: "auth_failed", retryable: false }],
      ["busy", 429, { error: "rate_limited", retryable: true }],
    ] as const
  ).map(([words, status, body]): ContractCase => ({
    name: `a service that fails is told of with ${status}, without its words`,
    check: async (bench) => {
      const said = await expectRefusal(await recorded(bench, words), status, body);
      expectThat(!JSON.stringify(said).includes("sk-secret"), "what the service said must stay here");
    },
  })),
];
