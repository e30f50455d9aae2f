/**
 * The contract of `@framers/agentos` 0.9, as its own declarations have it: written down here so that its runtime need not
 * be installed to see that the two take each other's stores.
 */
export interface Checkpoint {
  id: string;
  graphId: string;
  runId: string;
  nodeId: string;
  timestamp: number;
  state: { input: unknown; scratch: unknown; artifacts: unknown; diagnostics: DiagnosticsView };
  memorySnapshot?: {
    reads: Array<{ traceId: string; content: string; strength: number }>;
    pendingWrites: Array<{ type: string; content: string; scope: string }>;
  };
  nodeResults: Record<string, { effectClass: EffectClass; output: unknown; durationMs: number }>;
  visitedNodes: string[];
  skippedNodes?: string[];
  pendingEdges: string[];
}

export type EffectClass = "pure" | "read" | "write" | "external" | "human";

export interface DiagnosticsView {
  totalTokensUsed: number;
  totalDurationMs: number;
  nodeTimings: Record<string, { startMs: number; endMs: number; tokensUsed: number }>;
  discoveryResults: Record<string, { query: string; toolsFound: string[]; latencyMs: number }>;
  guardrailResults: Record<string, { guardrailId: string; passed: boolean; action: string; latencyMs: number }>;
  checkpointsSaved: number;
  memoryReads: number;
  memoryWrites: number;
}

export interface CheckpointMetadata {
  id: string;
  runId: string;
  graphId: string;
  nodeId: string;
  timestamp: number;
  stateSize: number;
  hasMemorySnapshot: boolean;
}

export interface GraphState<TInput = unknown, TScratch = unknown, TArtifacts = unknown> {
  input: Readonly<TInput>;
  scratch: TScratch;
  memory: { reads: unknown[] };
  artifacts: TArtifacts;
  diagnostics: DiagnosticsView;
  currentNodeId: string;
  visitedNodes: string[];
  iteration: number;
  checkpointId?: string;
}

export interface ICheckpointStore {
  save(checkpoint: Checkpoint): Promise<void>;
  get(checkpointId: string): Promise<Checkpoint | null>;
  load(runId: string, nodeId?: string): Promise<Checkpoint | null>;
  latest(runId: string): Promise<Checkpoint | null>;
  list(graphId: string, options?: { limit?: number; runId?: string }): Promise<CheckpointMetadata[]>;
  delete(checkpointId: string): Promise<void>;
  fork(checkpointId: string, patchState?: Partial<GraphState>): Promise<string>;
}
