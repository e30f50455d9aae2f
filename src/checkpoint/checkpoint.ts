/**
 * What a graph agent saves of itself at a node's boundary, so that it can go on from there. Fields and names are those
 * of AgentOS (`@framers/agentos`), so that its runtime takes these stores as they are.
 */
export interface Checkpoint {
  /** Unique for good; a checkpoint saved under the same id takes the place of the one before. */
  id: string;
  graphId: string;
  /** The graph's run: no AG-UI run, though an agent may use the same id for both. */
  runId: string;
  /** The node at whose boundary it was taken. */
  nodeId: string;
  /** When it was taken, in ms since the Unix epoch: the order of a run's checkpoints. */
  timestamp: number;
  state: CheckpointState;
  memorySnapshot?: {
    reads: { traceId: string; content: string; strength: number }[];
    pendingWrites: { type: string; content: string; scope: string }[];
  };
  /** What the nodes gave that were done by then, by node id. */
  nodeResults: Record<string, { effectClass: EffectClass; output: unknown; durationMs: number }>;
  /** Nodes that were done by then, in order. */
  visitedNodes: string[];
  /** Nodes that the routing left out, in order. */
  skippedNodes?: string[];
  /** Edges whose target nodes had not begun. */
  pendingEdges: string[];
  /** Where a fork comes from. Not in AgentOS. */
  forkedFrom?: CheckpointOrigin;
}

/** The partitions of a graph's state. */
export interface CheckpointState {
  input: unknown;
  scratch: unknown;
  artifacts: unknown;
  diagnostics: CheckpointDiagnostics;
}

/** What a node may do to the world. */
export type EffectClass = "pure" | "read" | "write" | "external" | "human";

/** What AgentOS counts of a run. Times are in ms. */
export interface CheckpointDiagnostics {
  totalTokensUsed: number;
  totalDurationMs: number;
  nodeTimings: Record<string, { startMs: number; endMs: number; tokensUsed: number }>;
  discoveryResults: Record<string, { query: string; toolsFound: string[]; latencyMs: number }>;
  guardrailResults: Record<string, { guardrailId: string; passed: boolean; action: string; latencyMs: number }>;
  checkpointsSaved: number;
  memoryReads: number;
  memoryWrites: number;
}

/** What can be told of a checkpoint without reading its state. */
export interface CheckpointMetadata {
  id: string;
  runId: string;
  graphId: string;
  nodeId: string;
  timestamp: number;
  /** About how large the state is, in UTF-16 code units of text that says the same. */
  stateSize: number;
  hasMemorySnapshot: boolean;
  /** Of several with one `timestamp`: the higher was saved later. Not in AgentOS. */
  turn?: number;
  /** Where a fork comes from. Not in AgentOS. */
  forkedFrom?: CheckpointOrigin;
}

/** The checkpoint that a run was forked from. */
export interface CheckpointOrigin {
  checkpointId: string;
  runId: string;
}
