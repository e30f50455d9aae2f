import { createApp } from "vue";
import { runtimePlugin } from "ag-ui-local-runtime/vue";
import { connect } from "../connect.js";
import App from "./App.vue";

createApp(App).use(runtimePlugin(connect)).mount("#app");
