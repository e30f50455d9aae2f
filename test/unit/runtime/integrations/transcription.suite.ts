import { defineAgent } from "ag-ui-local-runtime/worker";
import type { TranscriptionService } from "ag-ui-local-runtime/runtime";
import { describe, expect, test } from "vitest";
import { postOf, served } from "./kit.js";

type Heard = Parameters<TranscriptionService["transcribeFile"]>[0];

/** A service that says what it is told to, and fails where the recording's name is a key of these. */
const FAILURES: Readonly<Record<string, unknown>> = {
  "limited.webm": Object.assign(new Error("slow down, sk-secret"), { status: 429 }),
  "key.webm": new Error("Incorrect API key provided: sk-secret"),
  "long.webm": new Error("The recording is too long"),
  "short.webm": new Error("The recording is too short"),
  "network.webm": new TypeError("fetch failed"),
  "broken.webm": new Error("sk-secret broke"),
};

export function scriptedService(): TranscriptionService & { readonly heard: Heard[] } {
  const heard: Heard[] = [];
  return {
    heard,
    async transcribeFile(file) {
      heard.push(file);
      const failure = FAILURES[file.audioFile.name];
      if (failure !== undefined) throw failure;
      return `heard ${await file.audioFile.text()}`;
    },
  };
}

const SOUND = new Uint8Array([0x1a, 0x45, 0xdf, 0xa3, 0x00, 0xff, 0x0a, 0x0d]);
const TEXT = `heard ${new TextDecoder().decode(SOUND)}`;
const agents = { silent: defineAgent(async function* () {}) };

/** The two ways to send a recording. */
const WAYS: readonly (readonly [
  string,
  (name: string, type?: string, sound?: Uint8Array<ArrayBuffer>) => RequestInit,
])[] = [
  [
    "a form",
    (name, type = "audio/webm;codecs=opus", sound = SOUND) => {
      const body = new FormData();
      body.set("audio", new File([sound], name, { type }));
      return { method: "POST", body };
    },
  ],
  [
    "JSON",
    (filename, mimeType = "audio/webm;codecs=opus", sound = SOUND) =>
      postOf({ audio: btoa(String.fromCharCode(...sound)), mimeType, filename }),
  ],
];

/**
 * What a runtime with `transcriptionService` does.
 *
 * @param serve how the requests reach the runtime's handler; by default they are handed to it
 */
export function describeTranscription(
  name: string,
  serve: (fetch: (request: Request) => Promise<Response>) => Promise<string | undefined> = async () => undefined,
): void {
  const start = async (transcriptionService?: TranscriptionService) => {
    const { fetch: inner, handler } = served({ agents, ...(transcriptionService && { transcriptionService }) });
    const origin = await serve(handler);
    return origin === undefined ? inner : (path: string, init?: RequestInit) => fetch(origin + path, init);
  };

  describe.each(WAYS)(`${name}: a recording, sent as %s`, (_, send) => {
    test("is heard byte for byte", async () => {
      const service = scriptedService();
      const request = await start(service);
      const answer = await request("/transcribe", send("a.webm"));
      const type = "audio/webm;codecs=opus";
      expect([answer.status, await answer.json()]).toEqual([200, { text: TEXT, size: SOUND.length, type }]);
      const [{ audioFile, mimeType, size }] = service.heard as [Heard];
      expect([audioFile.name, mimeType, size]).toEqual(["a.webm", type, SOUND.length]);
      expect(new Uint8Array(await audioFile.arrayBuffer())).toEqual(SOUND);
    });

    test.each([
      ["limited", 429, "rate_limited", true],
      ["key", 401, "auth_failed", false],
      ["long", 400, "audio_too_long", false],
      ["short", 400, "audio_too_short", false],
      ["network", 502, "network_error", true],
      ["broken", 500, "provider_error", true],
    ])("whose service fails (%s) is answered with %i %s", async (what, status, error, retryable) => {
      const request = await start(scriptedService());
      const answer = await request("/transcribe", send(`${what}.webm`));
      const text = await answer.text();
      expect([answer.status, JSON.parse(text)]).toMatchObject([status, { error, retryable }]);
      expect(text).not.toContain("secret");
    });

    test("that is none reaches no service", async () => {
      const service = scriptedService();
      const request = await start(service);
      const asked = [send("a.mp4", "video/mp4"), send("a.webm", "audio/webm", new Uint8Array())];
      const answers = await Promise.all(
        asked.map(async (init) => {
          const answer = await request("/transcribe", init);
          return [answer.status, ((await answer.json()) as { error: string }).error];
        }),
      );
      expect(answers.map(([status]) => status)).toEqual([400, 400]);
      expect(service.heard).toEqual([]);
    });

    test("is refused where there is no service", async () => {
      const request = await start();
      const answer = await request("/transcribe", send("a.webm"));
      expect([answer.status, await answer.json()]).toMatchObject([503, { error: "service_not_configured" }]);
    });
  });

  test.each([true, false])(`${name}: /info says whether recordings are heard: %s`, async (hears) => {
    const request = await start(hears ? scriptedService() : undefined);
    expect(await (await request("/info")).json()).toMatchObject({ audioFileTranscriptionEnabled: hears });
  });
}
