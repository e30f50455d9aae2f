/** What a page calls its worker: "<database>" or "<database>#<anything>", and behind it the name of one more of it. */
export const workerName = (worker: string, name: string): string => (name === "" ? worker : `${worker}~${name}`);

/** What the pages of this worker call it, whichever of its name it is. */
export const ownName = (): string => self.name.split("~")[0]!;
