import { joinChunks, sliceChunk } from "../../run/pack.js";
import { chunkSize } from "../../run/size.js";
import type { Chunk } from "../../run/types.js";

/** Events of a frame that is joined from several chunks, at most. One chunk that has more is handed out as it is. */
export const FRAME_EVENTS = 1_024;
/** Its size at most, see `sizeOf`. */
export const FRAME_SIZE = 128 * 1_024;

/**
 * What a reader up to `seq` misses of consecutive chunks. One that is several chunks behind gets them joined, so that a
 * tab which was frozen, or attaches late, gets few frames.
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
