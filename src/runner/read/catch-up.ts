import { joinChunks, sliceChunk } from "../../run/pack.js";
import type { Chunk } from "../../run/types.js";
import { joinGroups } from "../../storage/repacking.js";

/** Most events of a frame that joins several chunks. A single larger chunk is sent as it is. */
export const FRAME_EVENTS = 1_024;
/** Its maximum size, see `sizeOf`. */
export const FRAME_SIZE = 128 * 1_024;

/**
 * What a reader at `seq` lacks of consecutive chunks. Several chunks are joined, so that a tab that was frozen or
 * attaches late gets few frames.
 */
export const catchUp = (chunks: readonly Chunk[], seq: number): readonly Chunk[] =>
  joinGroups(
    chunks.flatMap((chunk) => sliceChunk(chunk, seq + 1) ?? []),
    FRAME_EVENTS,
    FRAME_SIZE,
  ).map(joinChunks);
