import { joinChunks, sliceChunk } from "../../run/pack.js";
import { chunkSize } from "../../run/size.js";
import type { Chunk } from "../../run/types.js";

/** Most events of a frame that joins several chunks. A single larger chunk is sent as it is. */
export const FRAME_EVENTS = 1_024;
/** Its maximum size, see `sizeOf`. */
export const FRAME_SIZE = 128 * 1_024;

/**
 * What a reader at `seq` lacks of consecutive chunks. Several chunks are joined, so that a tab that was frozen or
 * attaches late gets few frames.
 */
export function* catchUp(chunks: readonly Chunk[], seq: number): Generator<Chunk, void> {
  let joining: Chunk[] = [];
  let events = 0;
  let size = 0;
  for (const chunk of chunks) {
    const rest = sliceChunk(chunk, seq + 1);
    if (rest === undefined) continue;
    const its = chunkSize(rest);
    if (joining.length > 0 && (events + rest.count > FRAME_EVENTS || size + its > FRAME_SIZE)) {
      yield joinChunks(joining);
      joining = [];
      events = 0;
      size = 0;
    }
    joining.push(rest);
    events += rest.count;
    size += its;
  }
  if (joining.length > 0) yield joinChunks(joining);
}
