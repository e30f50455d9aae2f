import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { useBrowser } from "../../../test/tabs/driver/scripted.js";
import { startBuilt, type Server } from "../../../test/tabs/driver/server.js";
import { Chat } from "./chat.js";

const given = useBrowser();
let server: Server;

beforeAll(async () => {
  // One of its own, which can be ended.
  server = await startBuilt({ configFile: fileURLToPath(new URL("../vite.config.ts", import.meta.url)) });
});

test("a page that is open goes on without a network, its server gone", async () => {
  const a = new Chat(await given.browser.newTab(`${server.origin}#offline`));
  try {
    // What the page and its worker load when it is first needed. (Blocks of code load more: their colours.)
    await a.send("hello");
    await a.shows("You said: hello.");
    await a.shows("Now chart");
  } finally {
    await server.close();
  }
  const before = a.tab.errors.length;
  await a.send("weather");
  await a.shows("Weather in Lisbon: 21 degrees, sunny");
  await a.isIdle();
  await a.send("transfer");
  await a.press("[aria-label=Approval] button:first-of-type");
  await a.shows("Transferred.");
  await a.isIdle();
  await a.send("colour");
  await a.shows("setColour said: the background is #cfe8dc.");
  expect(a.tab.errors.slice(before)).toEqual([]);
});
