import { useMemo } from "react";
import {
  emptyThreadList,
  threadListActions,
  type ThreadListActions,
  type ThreadListOptions,
  type ThreadListSnapshot,
} from "../client/index.js";
import { useSnapshot, useStores } from "./provider.js";

/** A list of threads as it is shown now, and what can be done with it. The functions stay the same for a list. */
export interface ThreadList extends ThreadListSnapshot, ThreadListActions {}

/** The threads, newest first, kept up to date by the changes of all tabs. */
export function useThreads(options: ThreadListOptions = {}): ThreadList {
  // The same store for the same options.
  const store = useStores()?.threadList(options);
  const snapshot = useSnapshot(store, emptyThreadList);
  const actions = useMemo(() => threadListActions(store), [store]);
  return useMemo(() => ({ ...snapshot, ...actions }), [snapshot, actions]);
}
