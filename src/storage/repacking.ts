import { chunkSize } from "../run/size.js";
import type { Chunk } from "../run/types.js";

/*
 * What every store joins alike when it repacks a run.
 */

/** Events of a joined record, at most. */
export const RECORD_EVENTS = 4_096;
/** Its size at most, see `sizeOf`. */
export const RECORD_SIZE = 256 * 1_024;

/**
 * Which consecutive chunks of one run become one record, each group in order. Only those of one epoch are joined: it
 * says who wrote them. A chunk in a group of its own stays as it is.
 */
export function joinGroups(chunks: readonly Chunk[]): Chunk[][] {
  const groups: Chunk[][] = [];
  let group: Chunk[] = [];
  let events = 0;
  let size = 0;
  for (const chunk of chunks) {
    events += chunk.count;
    size += chunkSize(chunk);
    if (group[0]?.epoch === chunk.epoch && events <= RECORD_EVENTS && size <= RECORD_SIZE) {
      group.push(chunk);
      continue;
    }
    group = [chunk];
    groups.push(group);
    events = chunk.count;
    size = chunkSize(chunk);
  }
  return groups;
}
