/** What agents tell over a channel, by run: the answer must be asked for before the agent tells it. */
export function heard<T extends { readonly runId: string }>(channel: string): (runId: string) => Promise<T> {
  const waiting = new Map<string, (told: T) => void>();
  new BroadcastChannel(channel).onmessage = ({ data }: MessageEvent<T>) => {
    waiting.get(data.runId)?.(data);
    waiting.delete(data.runId);
  };
  return (runId) => new Promise((resolve) => waiting.set(runId, resolve));
}
