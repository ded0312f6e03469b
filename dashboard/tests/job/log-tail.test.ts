import { expect, test } from "vitest";
import type { Attempt } from "../../src/api/types";
import { hasLog } from "../../src/job/replicas/log-tail";
import { at, attempt, container } from "./builders";

const setup = container({ name: "setup", init: true, exitCode: 3, startedAt: at(1) });

test.each<[string, Partial<Attempt>, boolean]>([
  ["one that waits for a node", {}, false],
  ["one whose program has run", { startedAt: at(1) }, true],
  ["one whose init container failed", { containers: [setup, container({ state: "waiting" })] }, true],
  ["one whose program could not be started", { containers: [container({ exitCode: 128 })] }, false],
])("an attempt has a log: %s", (_, changes, expected) => {
  expect(hasLog(attempt(1, changes))).toBe(expected);
});
