/** What the demo keeps its threads, and its graphs their checkpoints, under. */
export const DB_NAME = "ag-ui-local-runtime-demo";
