import type { Message } from "@ag-ui/client";
import { defined } from "../../platform/defined.js";
import { Fold } from "../../run/fold.js";
import { PATCH_BOUNDS } from "../../run/patch-bounds.js";
import { equalJson } from "../../run/json.js";
import {
  asKnown,
  planInput,
  replacementsIn,
  strangersIn,
  titleOf,
  type InputPlan,
  type ThreadBase,
} from "../../run/input-plan.js";
import { runsElsewhere } from "../../lock/claim.js";
import { RunnerError } from "../../run/errors.js";
import { loaded } from "../../run/loaded.js";
import { isWritten, type ToolResult } from "../../run/pending-tool-calls.js";
import { answeredIn, hasResult } from "../../storage/pending-tool-calls.js";
import type { Claim, PersistedInput, RunRow, RunStore, ThreadHead } from "../../storage/run-store.js";
import { EventGate } from "../agent/event-gate.js";
import type { RunStart } from "../history/baseline.js";
import { checkHere } from "../history/here.js";
import { newThread } from "../history/history.js";
import type { RunnerParts } from "../parts.js";
import { RecordedRun } from "../history/recorded-run.js";
import type { RunnerContext } from "./recovery.js";
import { noBranchPoint, refusalFor, startOf } from "./refusals.js";
import type { LiveRunRequest, PlacedRequest } from "../request.js";
import { steadily } from "../../storage/steadily.js";

/** A run whose fence is committed: what it starts from. */
export interface FencedRun {
  readonly claim: Claim;
  readonly plan: InputPlan;
  /** The state that the agent is given. */
  readonly state: unknown;
  /** That state is the thread's, so the log need not repeat it. */
  readonly stateIsThreads: boolean;
  /** The thread's state and its origin, where the log does not repeat it. */
  readonly start: RunStart | undefined;
  /** The part of the input that goes into the log. */
  readonly persisted: PersistedInput;
  /** The run as rebuilt from its committed events: none yet. */
  readonly recorded: RecordedRun;
  /** Bounds the cost of its agent's events. */
  readonly gate: EventGate;
}

export type FenceResult =
  | { readonly is: "fenced"; readonly run: FencedRun }
  /** The run id was used before. */
  | { readonly is: "exists"; readonly run: RunRow }
  /** The thread changed after each read of its end. */
  | { readonly is: "moved" }
  /** Without Web Locks: another host's run came first. */
  | { readonly is: "taken" };

/** Attempts when the thread changes between the read of the base and the fence; the first is made without a read. */
const TRIES = 4;

/**
 * Reads what a run starts from and writes the fence. The caller holds the thread's lock, so a run that is still live in
 * the log is orphaned (without Web Locks: only if it is this host's) and is settled first.
 *
 * @param sending called before the fence is sent: from then on it may be committed even if this function throws
 */
export async function fenceRun(
  context: RunnerContext,
  request: PlacedRequest,
  sending: () => Promise<void>,
): Promise<FenceResult> {
  const { parts, history, recovery } = context;
  const {
    threadId,
    agentId,
    input,
    partial,
    shownAs,
    cut,
    branchBefore,
    fingerprint,
    afterToolCalls = false,
    attempt,
  } = request;

  const readEnd = (): Promise<ThreadEnd | undefined> =>
    steadily(parts.store, threadId, async (before) => {
      if (runsElsewhere(parts, before)) return undefined;
      const head = before?.live === undefined ? before : await recovery.settleOrphan(before, "broken");
      if (head === undefined || head.deleted === true) {
        await checkHere(parts, threadId);
        return { epoch: 0, base: newThread() };
      }
      return { epoch: head.epoch, base: await history.base(head), head };
    });
  for (let tries = 0; tries < TRIES; tries++) {
    // The cached end of the thread is tried without a read: the fence detects a stale one.
    const known: ThreadEnd | undefined =
      tries === 0 && !afterToolCalls && attempt === undefined ? history.last(threadId) : undefined;
    const end = known ?? (await readEnd());
    if (end === undefined) return { is: "taken" };
    const results = request.asked?.results ?? (await parts.store.toolResults(end.head));
    const messages = shownAs === undefined ? input.messages : [...asKnown(end.base, input.messages, shownAs)];
    const outdated = partial === undefined ? await outdatedIn(parts, threadId, end.base, messages) : undefined;
    const left = partial === undefined ? await leftIn(parts, threadId, end.base, messages) : undefined;
    const unseen = request.unseen?.();
    const sender = { partial: partial !== undefined, cut, branchBefore, outdated, left, results, unseen };
    const plan =
      attempt === undefined
        ? planInput(end.base, { ...input, messages }, sender)
        : await (await loaded(import("./attempt.js"))).planAttempt(context, request, attempt, end.base);
    const start = plan?.is === "branch" ? await startOf(context, threadId, plan.afterRunIndex) : end.base;
    if (start === undefined) continue;
    const refusal = plan === undefined ? noBranchPoint(request) : await refusalFor(parts, request, { ...end, start });
    if (plan === undefined || refusal !== undefined) {
      // A resent run answers the interrupts that were open when it was first sent.
      const same = await parts.store.runById(threadId, input.runId, fingerprint);
      if (same?.fingerprint === fingerprint) return { is: "exists", run: same };
      if (known === undefined) throw refusal;
      continue;
    }
    const persisted: PersistedInput = {
      messages: persistedOf(request, plan, results),
      ...(input.resume !== undefined && { resume: input.resume }),
      ...againOf(parts, request),
    };
    const broken = attempt === undefined ? undefined : await parts.store.runById(threadId, attempt.of);
    const asker = request.asked?.asker ?? broken?.asker;
    await sending();
    const result = await parts.store.claim({
      threadId,
      runId: input.runId,
      holder: parts.hostId,
      startedAt: parts.clock.now(),
      base: end.base.runIndex < 0 ? undefined : { activeRunIndex: end.base.runIndex, epoch: end.epoch },
      prevRunIndex: start.runIndex < 0 ? null : start.runIndex,
      input: persisted,
      fingerprint,
      ...(plan.is === "continue" && {
        toolCallIds: answeredIn(end.head)
          .filter(hasResult(results))
          .map(({ toolCallId }) => toolCallId),
      }),
      title: titleOf(persisted.messages),
      ...defined({
        agentId,
        parentRunId: input.parentRunId,
        answerId: request.answerId,
        waiting: request.waiting,
        afterWaiting: request.afterWaiting,
        attempt,
        asker,
      }),
    });
    if (result.is === "exists") return result;
    if (result.is === "moved") continue;
    if (result.is === "behind" && request.waiting !== true) {
      const message = "Runs of the thread wait, and go first";
      throw new RunnerError("thread-busy", { threadId, runId: input.runId }, { message });
    }
    if (result.is !== "claimed") {
      const message = result.is === "gone" ? "The run does not wait any more" : "Another waiting run goes first";
      throw new RunnerError("cancelled", { threadId, runId: input.runId }, { message });
    }
    recovery.claimed(threadId, input.runId);
    const stateSet = isStateSet(request);
    const { maxPatchOperations: operations, maxCopiedBytes: copied, maxDepth: depth } = parts.eventLimits;
    const stateIsThreads = !stateSet && (plan.is === "continue" || equalJson(start.state, end.base.state));
    const { state, runIndex } = start;
    return {
      is: "fenced",
      run: {
        claim: result.claim,
        plan,
        state: stateSet ? (input.state as unknown) : state,
        stateIsThreads,
        start: stateIsThreads ? { state, runIndex, epoch: end.epoch } : undefined,
        persisted,
        recorded: new RecordedRun(start, persisted),
        gate: new EventGate(
          parts.eventLimits,
          new Fold(start, { ...PATCH_BOUNDS, operations, copied, depth }),
          result.bytes,
        ),
      },
    };
  }
  return { is: "moved" };
}

/** The thread at the end of its path. `head`: absent where it was not read, or there is none. */
interface ThreadEnd {
  readonly epoch: number;
  readonly base: ThreadBase;
  readonly head?: ThreadHead;
}

/** What an attempt to go on with the run is given beside messages, where the agent's policy may start one. */
function againOf(
  { recovery, recordInput }: RunnerParts,
  { agentId, input: { tools, context, forwardedProps } }: PlacedRequest,
): Pick<PersistedInput, "again"> {
  if (recovery.policyOf?.(agentId) === undefined) return {};
  // The others may hold secrets: only where they are asked for.
  const isAsked = (field: "context" | "forwardedProps"): boolean => recordInput.includes(field);
  const props = forwardedProps as unknown;
  return {
    again: {
      tools,
      ...(isAsked("context") && { context }),
      ...(isAsked("forwardedProps") && { forwardedProps: props }),
    },
  };
}

/** What goes into the log of the messages: a caller's own choice does not leave out answers that only the log had. */
function persistedOf(
  { persistedInputMessages }: PlacedRequest,
  { newMessages }: InputPlan,
  results: readonly ToolResult[],
): readonly Message[] {
  if (persistedInputMessages === undefined) return newMessages;
  const taken = new Set<Message>(newMessages);
  return [...results.filter((result) => taken.has(result)), ...persistedInputMessages];
}

/** Ids of messages that the sender has in a stale form, from before an edit. */
async function outdatedIn(
  { store }: RunnerParts,
  threadId: string,
  base: ThreadBase,
  sent: readonly Message[],
): Promise<ReadonlySet<string>> {
  const edits = replacementsIn(base, sent).flatMap(({ message, isLast }) => (isLast ? [] : [message]));
  const found = await foundIn(store, threadId, edits, (form, { content }) => equalJson(form.content, content));
  return new Set(found.map(({ id }) => id));
}

/**
 * Messages that another branch has in the sender's form. Agents' messages may be shown in other forms, so only roles
 * count.
 */
async function leftIn(
  { store }: RunnerParts,
  threadId: string,
  base: ThreadBase,
  sent: readonly Message[],
): Promise<ReadonlySet<Message>> {
  const isSame = (form: Message, message: Message): boolean =>
    form.role === message.role && (!isWritten(message) || equalJson(form.content, message.content));
  return new Set(await foundIn(store, threadId, strangersIn(base, sent), isSame));
}

/** The messages of which some run of the thread left an equal form. */
async function foundIn(
  store: RunStore,
  threadId: string,
  messages: readonly Message[],
  isSame: (form: Message, message: Message) => boolean,
): Promise<readonly Message[]> {
  if (messages.length === 0) return [];
  const forms = await store.messageForms(
    threadId,
    messages.map(({ id }) => id),
  );
  return messages.filter((message) => forms.get(message.id)?.some((form) => isSame(form, message)) === true);
}

/** A fresh AG-UI agent always sends `{}`: over the bare contract that counts as not set. */
function isStateSet({ input, partial }: LiveRunRequest): boolean {
  if (partial !== undefined) return partial.stateSet;
  const { state } = input;
  if (state === undefined || state === null) return false;
  return typeof state !== "object" || Array.isArray(state) || Object.keys(state).length > 0;
}
