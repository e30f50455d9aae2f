import { expect, test } from "vitest";
import {
  checkpointDbName,
  formerLeaseDbName,
  hostChannelName,
  hostLifeLockName,
  langGraphDbName,
  STAND_IN,
  threadLockName,
  userDbName,
  userOf,
} from "../../../src/platform/names.js";
import { USER } from "../../../src/run/options.js";

const [isUser] = USER;

test("each user has a database of their own, and none has that of all", () => {
  expect(userDbName(undefined, "app")).toBe("app");
  expect(userDbName("ada", "app")).toBe("app@ada");
  expect(userDbName("ada@site.test/ü", "app")).toBe("app@ada%40site%2Etest%2F%C3%BC");
});

test("a worker that stands in for a user's is of that user", () => {
  expect(userOf(`ada${STAND_IN}host-2`)).toBe("ada");
  expect(userDbName(`ada${STAND_IN}host-2`, "app")).toBe(userDbName("ada", "app"));
  expect(isUser(`ada${STAND_IN}host-2`)).toBe(true);
  // Without a name of its own it stands in for a worker of no user.
  for (const name of [`${STAND_IN}host-2`, `ada${STAND_IN}a${STAND_IN}b`]) expect(isUser(name)).toBe(false);
});

test("no name that contexts share is that of two users, whatever they are called", () => {
  const users = [
    undefined,
    "a",
    "a.leases",
    "a.checkpoints",
    "a.langgraph",
    "a:hosts",
    "a@b",
    "A",
    "a%2Eleases",
    "a host-2",
  ];
  const names = users.flatMap((user) => {
    const dbName = userDbName(user, "app");
    return [
      dbName,
      formerLeaseDbName(dbName),
      checkpointDbName(dbName),
      langGraphDbName(dbName),
      hostChannelName(dbName),
      threadLockName(dbName, "t"),
      threadLockName(dbName, "a:hosts"),
      hostLifeLockName(dbName, "t"),
    ];
  });
  expect(new Set(names).size).toBe(names.length);
});

test("a user has 1 to 200 characters that a database's name can have", () => {
  for (const user of ["a", "host-2", "ü@x.y/z z", "😀".repeat(200)]) {
    expect(isUser(user)).toBe(true);
    expect(() => userDbName(user, "app")).not.toThrow();
  }
  for (const user of ["", "a".repeat(201), "a\u0000", "a\n", "\ud800", "a\u007f", 7, null, {}]) {
    expect(isUser(user)).toBe(false);
  }
});
