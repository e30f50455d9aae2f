import { describeValidation } from "../unit/langgraph/validation.suite.js";

describeValidation("IndexedDBSaver, in the browser");
