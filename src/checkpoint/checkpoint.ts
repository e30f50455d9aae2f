/**
 * A graph agent's saved state at a node boundary, from which it can resume. Fields and names are those of AgentOS
 * (`@framers/agentos`), so that its runtime accepts these stores.
 */
export interface Checkpoint {
  /** Globally unique; saving under the same id overwrites. */
  id: string;
  graphId: string;
  /** The graph's run, not an AG-UI run; an agent may use the same id for both. */
  runId: string;
  /** The node after which it was taken. */
  nodeId: string;
  /** When it was taken, in ms since the Unix epoch: the order of a run's checkpoints. */
  timestamp: number;
  state: CheckpointState;
  memorySnapshot?: {
    reads: { traceId: string; content: string; strength: number }[];
    pendingWrites: { type: string; content: string; scope: string }[];
  };
  /** Results of the completed nodes, by node id. */
  nodeResults: Record<string, { effectClass: EffectClass; output: unknown; durationMs: number }>;
  /** Completed nodes, in order. */
  visitedNodes: string[];
  /** Nodes skipped by routing, in order. */
  skippedNodes?: string[];
  /** Edges whose target nodes had not started. */
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

/** A node's kind of side effect. */
export type EffectClass = "pure" | "read" | "write" | "external" | "human";

/** AgentOS' counters of a run. Times are in ms. */
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

/** A checkpoint's data that needs no read of its state. */
export interface CheckpointMetadata {
  id: string;
  runId: string;
  graphId: string;
  nodeId: string;
  timestamp: number;
  /** Approximate state size, in UTF-16 code units of equivalent text. */
  stateSize: number;
  hasMemorySnapshot: boolean;
  /** Orders checkpoints with the same `timestamp`: the higher was saved later. Not in AgentOS. */
  turn?: number;
  /** Where a fork comes from. Not in AgentOS. */
  forkedFrom?: CheckpointOrigin;
}

/** The checkpoint that a run was forked from. */
export interface CheckpointOrigin {
  checkpointId: string;
  runId: string;
}
