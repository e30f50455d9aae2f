import type { ThreadRecord } from "../run/contract.js";
import type { ThreadSummary } from "./shapes.js";

export const threadRecordOf = ({
  threadId,
  title,
  agentId,
  archived,
  createdAt,
  updatedAt,
}: Omit<ThreadSummary, "live">): ThreadRecord => ({
  id: threadId,
  name: title === "" ? null : title,
  agentId: agentId ?? "",
  organizationId: "",
  createdById: "",
  archived,
  createdAt: new Date(createdAt).toISOString(),
  updatedAt: new Date(updatedAt).toISOString(),
});
