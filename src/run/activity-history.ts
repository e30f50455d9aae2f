import type { Metadata } from "@ag-ui/client";

/** Metadata key by which a MESSAGES_SNAPSHOT tells `@ag-ui/client` which activities it covers. */
export const ACTIVITY_HISTORY = "@ag-ui/client";

/** Metadata of a MESSAGES_SNAPSHOT that covers all activities: those that it lacks are removed. */
export const ALL_ACTIVITIES: Metadata = { [ACTIVITY_HISTORY]: { authoritativeActivityTypes: null } };
