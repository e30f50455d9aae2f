import { chunkSize } from "../run/size.js";
import type { Chunk } from "../run/types.js";

/** Most events of a joined record. */
export const RECORD_EVENTS = 4_096;
/** Its largest size, see `sizeOf`. */
export const RECORD_SIZE = 256 * 1_024;

/**
 * Groups consecutive chunks of one run that become one record, or one frame. Only chunks of one epoch, and so of one
 * writer, are joined. A chunk in a group of its own stays as it is.
 */
export function joinGroups(chunks: readonly Chunk[], maxEvents = RECORD_EVENTS, maxSize = RECORD_SIZE): Chunk[][] {
  const groups: Chunk[][] = [];
  let group: Chunk[] = [];
  let events = 0;
  let size = 0;
  for (const chunk of chunks) {
    events += chunk.count;
    size += chunkSize(chunk);
    if (group[0]?.epoch === chunk.epoch && events <= maxEvents && size <= maxSize) {
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
