import type { Plugin } from "vite";

/** A page's policy, where Vite serves it: with Vite's websocket, its pinging worker, and the styles that it puts in. */
export const devServerPolicy: Plugin = {
  name: "dev-server-policy",
  apply: "serve",
  transformIndexHtml: (html) =>
    html
      .replace("connect-src 'self'", "connect-src 'self' ws://127.0.0.1:* ws://localhost:*")
      .replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
      .replace("worker-src 'self'", "worker-src 'self' blob:"),
};
