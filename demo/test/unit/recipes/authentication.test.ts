import { describe, expect, test } from "vitest";
import { authentication } from "../../../recipes/authentication.js";
import { inputOf, textOf } from "../../../../test/unit/runner/kit.js";
import { runtimeWith } from "../../../../test/unit/runtime/kit.js";
import { WAYS } from "../../../../test/unit/runtime/ways.js";

const TOKENS: ReadonlyMap<string, string> = new Map([["good", "Ada Löve"]]);
const verify = async (token: string) => TOKENS.get(token);

describe.each(WAYS)("authentication, $name", (way) => {
  const open = (headers: Readonly<Record<string, string>>) =>
    way.open(runtimeWith({ beforeRequestMiddleware: authentication(verify) }), headers);

  test.each([{ authorization: "Bearer good" }, { authorization: "bearer  good" }])("lets %j in", async (headers) => {
    const caller = await open(headers);
    await caller.run("counter", inputOf("t", "r"));
    expect(await caller.list()).toEqual(["t"]);
  });

  test.each<Record<string, string>>([
    {},
    { authorization: "" },
    { authorization: "good" },
    { authorization: "Bearer" },
    { authorization: "Bearer bad" },
    { authorization: "Bearer good bad" },
    { authorization: "Basic good" },
    { "x-user": "Ada" },
  ])("keeps %j out", async (headers) => {
    const caller = await open(headers);
    await expect(caller.run("counter", inputOf("t", "r"))).rejects.toMatchObject({ status: 401 });
    await expect(caller.list()).rejects.toMatchObject({ status: 401 });
  });

  test("names the user for what comes after it, whatever the caller says", async () => {
    const caller = await open({ authorization: "Bearer good", "x-user": "root" });
    expect(textOf(await caller.run("headers", inputOf("t", "r")))).toContain('"x-user":"Ada%20L%C3%B6ve"');
  });

  test("lets nobody in where the token cannot be verified", async () => {
    const beforeRequestMiddleware = authentication(() => {
      throw new Error("the key is secret");
    });
    const caller = await way.open(runtimeWith({ beforeRequestMiddleware }), { authorization: "Bearer good" });
    const refused = caller.run("counter", inputOf("t", "r"));
    await expect(refused).rejects.toMatchObject({ status: 500, body: expect.not.stringContaining("secret") });
  });
});
