import { RUNNER_ERROR_CODES, RunnerError } from "../../run/errors.js";
import type { WaitingError } from "../../run/types.js";
import { decoded, isNotOfRecord, type PayloadCodec } from "../codec.js";
import { corrupt, isText } from "./checks.js";
import { placeOfFailure } from "./records.js";
import type { StoredFailure, WaitingRecord } from "./schema.js";

/*
 * Why a waiting run could not be started. The message may hold what a middleware or the agent's own code said, and is
 * encoded; its code is not: any host tells by it that the run waits for somebody.
 */

type OfRun = Pick<WaitingRecord, "threadId" | "runId">;

export async function encodeFailure(codec: PayloadCodec, run: OfRun, error: WaitingError): Promise<StoredFailure> {
  return { ...error, message: await codec.encode(error.message, placeOfFailure(run, error)) };
}

/** Errors: RunnerError `corrupt-record`, or that of the codec. */
export async function decodeFailure(
  codec: PayloadCodec,
  run: OfRun,
  { code, message: stored }: StoredFailure,
): Promise<WaitingError> {
  const refused = (): RunnerError => corrupt("waiting", run);
  try {
    const message = await decoded(codec, stored, placeOfFailure(run, { code }), refused);
    if (!isText(message)) throw refused();
    return { code, message };
  } catch (error) {
    if (isNotOfRecord(error) || !isText(stored)) throw error;
    // Where all is encrypted, an older build has stored a plain one, or somebody else: what the code means is told.
    return { code, message: new RunnerError(RUNNER_ERROR_CODES.includes(code) ? code : "host-failed").message };
  }
}
