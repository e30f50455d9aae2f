/**
 * The conformance suite: proves that an AgentRunner does what the contract says.
 *
 * @module ag-ui-local-runtime/conformance
 */
export { describeAgentRunner, type DescribeAgentRunnerOptions, type TestFramework } from "./describe.js";
export { CONFORMANCE_CASES, type CaseId } from "./cases.js";
export type { ConformanceCase, Level } from "./case.js";
export { ConformanceError } from "./expect.js";
export type { FullAgentRunner, RecordedEvent, RecordedRunInfo } from "./full-runner.js";
export { scriptedAgent, type Script, type ScriptedAgentOptions, type Stage } from "./scripted-agent.js";
export { answering, held, type Held, type HeldAgent } from "./good-agents.js";
export { Gate } from "./patience.js";
export { MISBEHAVING_AGENTS } from "./misbehaving-agents.js";
export type { MisbehavingAgent, Outcome, Scene } from "./misbehaving/agent.js";
export type { View } from "./view.js";
export type {
  AgentRunner,
  AgentRunnerConnectRequest,
  AgentRunnerIsRunningRequest,
  AgentRunnerRunRequest,
  AgentRunnerStopRequest,
  ConnectedEvents,
  ThreadConnectRequest,
} from "../run/contract.js";
