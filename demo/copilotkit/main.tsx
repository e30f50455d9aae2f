import "./policy.js";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { quietInspector } from "ag-ui-local-runtime/copilotkit";
import { RuntimeProvider } from "ag-ui-local-runtime/react";
import { connect } from "./connect.js";
import { Page } from "./page.js";
import "@copilotkit/react-core/v2/styles.css";
import "./page.css";

quietInspector();
createRoot(document.querySelector("#app")!).render(
  <StrictMode>
    <RuntimeProvider runtime={connect}>
      <Page />
    </RuntimeProvider>
  </StrictMode>,
);
