import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { transcribe, type TranscriptionService } from "../../../../src/runtime/http/transcribe.js";
import { times } from "../../property.js";
import { JSON_TYPE, post, told } from "./kit.js";

const MAX = 10_000;
const base64 = btoa("sound");
const audio = { audio: base64, mimeType: "audio/webm" };
type Heard = Parameters<TranscriptionService["transcribeFile"]>[0];

function service(answer: () => unknown = () => "hello"): TranscriptionService & { readonly heard: Heard[] } {
  const heard: Heard[] = [];
  return {
    heard,
    transcribeFile: async (file) => {
      heard.push(file);
      return (await answer()) as string;
    },
  };
}

const form = (fields: Record<string, string | File>): Request => {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.set(name, value);
  return new Request("http://localhost/", { method: "POST", body });
};
const file = (type: string, name = "a.wav", content = "sound"): File => new File([content], name, { type });
const refused = (status: number, error: string, message: unknown = expect.any(String), retryable = false): object => ({
  status,
  body: { error, message, retryable },
});

test("a form of very many fields is refused before it is parsed", async () => {
  const many = new FormData();
  for (let at = 0; at < 150; at++) many.append("audio", file("audio/wav"));
  const request = new Request("http://localhost/", { method: "POST", body: many });
  const ears = service();
  const said = "The form has too many fields";
  expect(await told(await transcribe(request, ears, 1e6))).toEqual(refused(400, "invalid_request", said));
  expect(ears.heard).toEqual([]);
});

describe("a recording is heard", () => {
  test.each<[string, Request, string, string]>([
    ["a form", form({ audio: file("audio/wav") }), "audio/wav", "a.wav"],
    ["a form, with a codec", form({ audio: file("audio/webm;codecs=opus") }), "audio/webm;codecs=opus", "a.wav"],
    ["a form that does not say what it is", form({ audio: file("") }), "audio/webm", "a.wav"],
    ["a form of bytes", form({ audio: file("application/octet-stream") }), "audio/webm", "a.wav"],
    ["JSON", post(audio), "audio/webm", "recording.webm"],
    ["JSON with a name", post({ ...audio, mimeType: "Audio/MPEG", filename: "b.mp3" }), "audio/mpeg", "b.mp3"],
    [
      "JSON with a data: URL",
      post({ ...audio, audio: `data:audio/webm;base64,${base64}` }),
      "audio/webm",
      "recording.webm",
    ],
    ["JSON of bytes", post({ ...audio, mimeType: "application/octet-stream" }), "audio/webm", "recording.webm"],
  ])("from %s", async (_, request, type, name) => {
    const ears = service();
    expect(await told(await transcribe(request, ears, MAX))).toEqual({
      status: 200,
      body: { text: "hello", size: 5, type },
    });
    const [given] = ears.heard;
    expect([given!.mimeType, given!.size, given!.audioFile.name, given!.audioFile.type]).toEqual([type, 5, name, type]);
    expect(await given!.audioFile.text()).toBe("sound");
  });
});

describe("a recording is refused", () => {
  test("where there is no service, unread", async () => {
    let cancelled = false;
    const body = new ReadableStream<Uint8Array>({ cancel: () => void (cancelled = true) });
    const answer = await transcribe(post(body), undefined, MAX);
    expect(await told(answer)).toEqual(refused(503, "service_not_configured"));
    expect(cancelled).toBe(true);
  });

  test.each<[string, Request]>([
    ["no type", post(new Uint8Array(3), {})],
    ["another type", post("x", { "Content-Type": "audio/webm" })],
    ["a form without the field", form({ sound: file("audio/wav") })],
    ["a form with a text in the field", form({ audio: "sound" })],
    ["a broken form", post("x", { "Content-Type": "multipart/form-data; boundary=b" })],
    ["a form without boundary", post("x", { "Content-Type": "multipart/form-data" })],
    ["no JSON", post("{")],
    ["JSON without fields", post("null")],
    ["JSON without audio", post({ mimeType: "audio/webm" })],
    ["JSON with other audio", post({ ...audio, audio: [1, 2] })],
    ["JSON without a type", post({ audio: base64 })],
    ["JSON that is no base64", post({ ...audio, audio: "sound!" })],
  ])("%s", async (_, request) => {
    const ears = service();
    expect(await told(await transcribe(request, ears, MAX))).toEqual(refused(400, "invalid_request"));
    expect(ears.heard).toEqual([]);
  });

  test("compressed", async () => {
    const request = post(audio, { ...JSON_TYPE, "Content-Encoding": "gzip" });
    expect(await told(await transcribe(request, service(), MAX))).toEqual(refused(415, "invalid_request"));
  });

  test.each([form({ audio: file("video/mp4") }), post({ ...audio, mimeType: "text/html" })])(
    "of no audio",
    async (request) => {
      const message = expect.stringMatching(/^Unsupported audio format\. Supported: audio\/mpeg,/);
      expect(await told(await transcribe(request, service(), MAX))).toEqual(
        refused(400, "invalid_audio_format", message),
      );
    },
  );

  test.each([form({ audio: file("audio/wav", "a.wav", "") }), post({ ...audio, audio: "data:audio/webm;base64," })])(
    "of silence",
    async (request) => {
      expect(await told(await transcribe(request, service(), MAX))).toEqual(refused(400, "audio_too_short"));
    },
  );

  test.each([form({ audio: file("audio/wav", "a.wav", "x".repeat(MAX)) }), post({ ...audio, audio: "A".repeat(MAX) })])(
    "of too many bytes",
    async (request) => {
      expect(await told(await transcribe(request, service(), MAX))).toEqual(refused(413, "audio_too_long"));
    },
  );
});

describe("a service that fails", () => {
  const withStatus = (status: number): Error => Object.assign(new Error("key sk-secret"), { status });
  test.each<[number, string, boolean, unknown]>([
    [429, "rate_limited", true, withStatus(429)],
    [429, "rate_limited", true, new Error("Rate limit reached for sk-secret")],
    [429, "rate_limited", true, "429 secret"],
    [401, "auth_failed", false, withStatus(401)],
    [401, "auth_failed", false, withStatus(403)],
    [401, "auth_failed", false, new Error("Incorrect API key provided: sk-secret")],
    [400, "audio_too_long", false, new Error("audio is too long: secret")],
    [400, "audio_too_short", false, new Error("Audio file is too short. secret")],
    [502, "network_error", true, new TypeError("fetch failed")],
    [502, "network_error", true, new Error("connect ECONNREFUSED 10.0.0.1:80 secret")],
    [500, "provider_error", true, new Error("could not generate: secret")],
    [500, "provider_error", true, undefined],
    [500, "provider_error", true, { toString: null, secret: 1 }],
  ])("is %i %s, and its words stay here", async (status, error, retryable, thrown) => {
    const fails = service(() => Promise.reject(thrown as Error));
    const answer = await told(await transcribe(post(audio), fails, MAX));
    expect(answer).toEqual(refused(status, error, expect.any(String), retryable));
    expect(JSON.stringify(answer)).not.toContain("secret");
  });

  test("because it throws at once fails alike", async () => {
    const fails: TranscriptionService = {
      transcribeFile: () => {
        throw new Error("at once");
      },
    };
    expect(await told(await transcribe(post(audio), fails, MAX))).toEqual(
      refused(500, "provider_error", expect.any(String), true),
    );
  });

  test("because it says nothing fails alike", async () => {
    expect(
      await told(
        await transcribe(
          post(audio),
          service(() => undefined),
          MAX,
        ),
      ),
    ).toHaveProperty("body.error", "provider_error");
  });
});

test("whatever is posted, a service that works is answered for with 200 or a refusal", async () => {
  const type = fc.constantFrom(
    "application/json",
    "multipart/form-data; boundary=b",
    "multipart/form-data; boundary=",
    'multipart/form-data; boundary="',
    "text/plain",
    "",
  );
  const part = fc.constantFrom(
    "--b\r\n",
    "--b--",
    "\r\n",
    "\r\n\r\n",
    'Content-Disposition: form-data; name="audio"',
    '; filename="a"',
    "Content-Type: audio/wav",
    "--",
    '"',
    "x",
  );
  const body = fc.oneof(
    fc.array(part, { maxLength: 12 }).map((parts) => parts.join("")),
    fc.json(),
    fc
      .record({
        audio: fc.oneof(fc.base64String(), fc.string()),
        mimeType: fc.oneof(fc.constant("audio/wav"), fc.string()),
        filename: fc.anything().filter((x) => typeof x !== "bigint"),
      })
      .map((given) => JSON.stringify(given)),
  );
  await fc.assert(
    fc.asyncProperty(type, body, async (contentType, given) => {
      const answer = await told(await transcribe(post(given, { "Content-Type": contentType }), service(), MAX));
      expect(answer.status).toBeLessThan(500);
      if (answer.status !== 200)
        expect(answer.body).toEqual({ error: expect.any(String), message: expect.any(String), retryable: false });
    }),
    times(400),
  );
});
