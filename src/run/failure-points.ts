/**
 * The points between two steps of a run's life at which its host may end, each named for what was just done. After each
 * of them another host must find a thread that works (L8, L9). A run is told of them where it is given a hook for that
 * (`atFailurePoint` of the runner's options), so that tests can end its host there.
 */
export type FailurePoint =
  // Claiming.
  /** It waits behind the thread's runs. */
  | "claiming.queued"
  /** Another run is live: nothing of this one is in the log. */
  | "claiming.refused"
  /** The thread's lock is held, nothing is in the log. */
  | "claiming.locked"
  /** What it starts from is known, what a dead host left is settled; the fence is sent next. */
  | "claiming.read"
  /** It stands in the log, nobody was told. */
  | "claiming.fenced"
  /** Other hosts were told; the agent starts next. */
  | "claiming.told"
  // Appending.
  /** Events are packed, nothing of them is written. */
  | "appending.packed"
  /** They are in the log, nobody has seen them. */
  | "appending.committed"
  /** They are handed out. */
  | "appending.published"
  // Stopping.
  /** The request stands in the log, the holder has not acknowledged it. In the host that asks. */
  | "stopping.requested"
  /** The holder has heard of it, the agent has not. */
  | "stopping.heard"
  /** The agent was asked to end. */
  | "stopping.aborted"
  /** The lock of a holder that does not answer is taken, its run still stands as live. In the host that asks. */
  | "stopping.stolen"
  // Settling.
  /** The agent is heard no more, nothing of the end is written. */
  | "settling.decided"
  /** All that the agent said is in the log. */
  | "settling.drained"
  /** A stop request in the log decides the end instead. */
  | "settling.overruled"
  /** The end is in the log, the lock is held. */
  | "settling.committed"
  /** The lock is free, nobody was shown the end. */
  | "settling.released"
  /** The end is handed out, other hosts were not told. */
  | "settling.published"
  // Losing.
  /** The log cannot be written, or another host took over; nothing was done about it. */
  | "losing.lost"
  // Recovering: in the host that ends another one's run.
  /** The orphan's lock is held. */
  | "recovering.locked"
  /** It is settled, the lock is held. */
  | "recovering.settled";

/** Is called at each point; what it returns is waited for where that is possible. */
export type AtFailurePoint = (point: FailurePoint, threadId: string) => void | Promise<void>;
