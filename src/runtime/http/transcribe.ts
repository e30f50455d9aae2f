import { messageOf } from "../../run/errors.js";
import { isJson, mediaTypeOf, readBytes, readJson } from "./body.js";
import { json } from "./responses.js";

/** Turns speech into text. */
export interface TranscriptionService {
  /**
   * @param file `mimeType` and `size` (in bytes) are those of `audioFile`
   * @returns the text
   * @throws anything; an HTTP caller learns only the kind of error
   */
  transcribeFile(file: { readonly audioFile: File; readonly mimeType: string; readonly size: number }): Promise<string>;
}

/** CopilotKit's codes: status, message, whether a retry may help. */
const ERRORS = {
  service_not_configured: [503, "Transcription service is not configured", false],
  invalid_audio_format: [400, "Unsupported audio format", false],
  invalid_request: [400, "The request is not valid", false],
  audio_too_long: [400, "The audio is too long", false],
  audio_too_short: [400, "The audio is too short", false],
  rate_limited: [429, "Too many transcriptions: try again later", true],
  auth_failed: [401, "The transcription service refused the credentials of this server", false],
  network_error: [502, "The transcription service could not be reached", true],
  provider_error: [500, "The transcription service failed", true],
} as const;

type ErrorCode = keyof typeof ERRORS;

const AUDIO_TYPES = ["mpeg", "mp3", "mp4", "wav", "webm", "ogg", "flac", "aac"].map((type) => `audio/${type}`);

/** For a recording without a name or type. */
const FALLBACK = { name: "recording.webm", type: "audio/webm" };

function failure(error: ErrorCode, message: string = ERRORS[error][1], status: number = ERRORS[error][0]): Response {
  return json({ error, message, retryable: ERRORS[error][2] }, status);
}

/**
 * Transcribes a recording: multipart with a file `audio`, or JSON `{ audio, mimeType, filename? }` with the audio in
 * base64 (or as a `data:` URL).
 *
 * @param maxBytes of the whole body
 * @returns 200 `{ text, size, type }`; else `{ error, message, retryable }`. Errors of the service are reported by code
 * alone: their text may hold keys, addresses, or the transcript.
 */
export async function transcribe(
  request: Request,
  service: TranscriptionService | undefined,
  maxBytes: number,
): Promise<Response> {
  if (service === undefined) {
    void request.body?.cancel().catch(() => undefined);
    return failure("service_not_configured");
  }
  let audioFile: File;
  try {
    audioFile = await readAudio(request, maxBytes);
  } catch (answer) {
    if (answer instanceof Response) return answer;
    throw answer;
  }
  const { type, size } = audioFile;
  if (size === 0) return failure("audio_too_short");
  try {
    const text: unknown = await service.transcribeFile({ audioFile, mimeType: type, size });
    return typeof text === "string" ? json({ text, size, type }) : failure("provider_error");
  } catch (error) {
    return failure(kindOf(error));
  }
}

async function readAudio(request: Request, maxBytes: number): Promise<File> {
  const mediaType = mediaTypeOf(request);
  if (mediaType === "multipart/form-data") return fileOfForm(request, maxBytes);
  if (isJson(mediaType)) return fileOfJson(request, maxBytes);
  void request.body?.cancel().catch(() => undefined);
  throw failure("invalid_request", "Audio is sent as multipart/form-data, or as application/json in base64");
}

/** The parser takes seconds for a body of millions of empty fields. */
const MAX_FIELDS = 100;

async function fileOfForm(request: Request, maxBytes: number): Promise<File> {
  const bytes = await readBytes(request, maxBytes).catch(inOwnWords);
  // Every field begins with these words, which other bytes hardly ever contain.
  const fields = new TextDecoder("latin1").decode(bytes).split(/form-data;/i, MAX_FIELDS + 2).length - 1;
  if (fields > MAX_FIELDS) throw failure("invalid_request", "The form has too many fields");
  const contentType = request.headers.get("Content-Type")!;
  const form = await new Response(bytes, { headers: { "Content-Type": contentType } }).formData().catch(() => {
    throw failure("invalid_request", "The form cannot be read");
  });
  const file = form.get("audio");
  if (!(file instanceof File)) throw failure("invalid_request", "The form must have a file in its field audio");
  return asAudio(file, file.name, file.type);
}

async function fileOfJson(request: Request, maxBytes: number): Promise<File> {
  const body = await readJson(request, maxBytes).catch(inOwnWords);
  const { audio, mimeType, filename } = (body ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof audio !== "string" || audio === "") {
    throw failure("invalid_request", "audio must be the audio in base64");
  }
  if (typeof mimeType !== "string" || mimeType === "") {
    throw failure("invalid_request", "mimeType must be a type, audio/webm for example");
  }
  const name = typeof filename === "string" ? filename : "";
  return asAudio(bytesOf(audio), name, mimeType);
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  try {
    // In a data: URL the base64 follows the comma.
    return Uint8Array.from(atob(base64.slice(base64.indexOf(",") + 1)), (char) => char.charCodeAt(0));
  } catch {
    throw failure("invalid_request", "audio is not base64");
  }
}

function asAudio(content: BlobPart, name: string, type: string): File {
  const mediaType = type.split(";", 1)[0]!.trim().toLowerCase();
  const unsaid = mediaType === "" || mediaType === "application/octet-stream";
  if (!unsaid && !AUDIO_TYPES.includes(mediaType)) {
    throw failure("invalid_audio_format", `Unsupported audio format. Supported: ${AUDIO_TYPES.join(", ")}`);
  }
  return new File([content], name === "" ? FALLBACK.name : name, { type: unsaid ? FALLBACK.type : type });
}

/** Maps a refusal of the body to the codes of transcription. */
function inOwnWords(answer: unknown): never {
  if (!(answer instanceof Response)) throw answer;
  if (answer.status === 413) throw failure("audio_too_long", undefined, 413);
  throw failure("invalid_request", "The body cannot be read", answer.status);
}

/** Services share no error type: classified by status if there is one, else by message. */
function kindOf(error: unknown): ErrorCode {
  const status: unknown = error instanceof Error && "status" in error ? error.status : undefined;
  const said = messageOf(error);
  if (status === 429 || /\b429\b|rate.?limit|too many requests|quota/i.test(said)) return "rate_limited";
  if (status === 401 || status === 403 || /\b40[13]\b|unauthori[sz]ed|authenticat|api.?key|forbidden/i.test(said)) {
    return "auth_failed";
  }
  if (/too (long|large)|duration|maximum length/i.test(said)) return "audio_too_long";
  if (/too (short|small)|minimum length/i.test(said)) return "audio_too_short";
  const network = /fetch failed|failed to fetch|network|socket|timed? ?out|E(CONN\w+|NOTFOUND|AI_AGAIN|PIPE|TIMEDOUT)/i;
  return network.test(said) ? "network_error" : "provider_error";
}
