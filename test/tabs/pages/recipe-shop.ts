import { IndexedDBSaver } from "ag-ui-local-runtime/langgraph";
import { graphAgent } from "../../../demo/recipes/langgraph.js";
import { shopGraph } from "./recipe-graph.js";

/** The shop's graph, which waits in its tool while this lock is held. */
export const SHOP_LOCK = "shop-is-closed";

export const shopIn = (dbName: string) =>
  graphAgent(
    shopGraph({
      checkpointer: new IndexedDBSaver({ dbName }),
      before: () => navigator.locks.request(SHOP_LOCK, { mode: "shared" }, async () => undefined),
    }),
    ["order"],
  );
