// `npm start`: installs what is missing, then serves the demo and, for its agent on a model, a scripted one (demo/servers/model.mjs).
// Only node: builtins until then.
import { install, requireNode, ROOT } from "../test/setup/install.mjs";

requireNode();
install();

const { createServer } = await import("vite");
const server = await createServer({ configFile: `${ROOT}/vite.config.ts`, clearScreen: false });
await server.listen();

const { address, port } = server.httpServer.address();
const at = `http://${address}:${port}`;
console.log(`
  ag-ui-local-runtime, demo: ${at}/
  A scripted model for it, OpenAI's protocol: ${at}/model/v1
  Open it in two tabs. Ctrl-C ends it.
`);

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => {
    // An open page must not keep the server: what has not closed by then is cut off.
    setTimeout(() => process.exit(0), 2_000).unref();
    void server.close().finally(() => process.exit(0));
  });
}
