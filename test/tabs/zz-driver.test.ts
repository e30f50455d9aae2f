import { createServer } from "node:http";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { launch } from "./driver/launch.js";
import type { Browser } from "./driver/browser.js";
let browser: Browser;
const html = `<!doctype html><html data-x="1"><body><main><button aria-label="Send" onclick="document.querySelector('[role=log]').append(document.querySelector('textarea').value)">S</button><label>Message <textarea></textarea></label>
<button disabled>Stop</button><input type=file onchange="this.files[0].text().then(t=>document.querySelector('[role=log]').append(t))" hidden><div role=log aria-label="Conversation"></div></main><script>
new SharedWorker(URL.createObjectURL(new Blob([""])));console.error("hello error")</script></body></html>`;
const server = createServer((q, r) => { r.setHeader("content-type", "text/html"); r.end(html); });
let url = "";
beforeAll(async () => { await new Promise<void>((r) => server.listen(0, "127.0.0.1", r)); url = `http://127.0.0.1:${(server.address() as any).port}/`; browser = await launch(inject("engine")); });
afterAll(async () => { await browser?.close(); server.close(); });
test("driver", async () => {
  console.time("t");
  const a = await browser.newTab(url); const b = await browser.newTab(url);
  await a.type("textbox", "Message", "Hello you");
  await a.click("button", "Send");
  await a.waitForText("log", "Conversation", "Hello you");
  expect(await b.isDisabled("button", "Stop")).toBe(true);
  expect(await a.attr("data-x")).toBe("1");
  await b.attachFile({ name: "a.md", content: "file content" });
  await b.waitForText("log", "Conversation", /file content/);
  await a.reload();
  expect(await a.text("log", "Conversation")).toBe("");
  expect(await a.evaluate(async (x: number) => x + 1, 1)).toBe(2);
  expect(await a.waitFor((x: number) => x + 1, 1)).toBe(2);
  expect(await a.count("button")).toBe(2);
  await expect(a.evaluate(() => { throw new Error("boo"); })).rejects.toThrow("boo");
  expect((await a.screenshot()).length).toBeGreaterThan(1000);
  console.log(a.errors, await a.url());
  await b.close();
  console.timeEnd("t");
});
