import { describeGraphs } from "../unit/langgraph/graphs.suite.js";
import { describeSaver } from "../unit/langgraph/saver.suite.js";

describeSaver("IndexedDBSaver, in the browser");
describeGraphs("graphs over IndexedDBSaver, in the browser");
