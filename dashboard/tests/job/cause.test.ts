import { expect, test } from "vitest";
import type { Replica } from "../../src/api/types";
import { causeText } from "../../src/job/replicas/cause";
import { at, attempt, replica } from "./builders";

const FAILED = attempt(1, { outcome: "Failed", startedAt: at(0), finishedAt: at(20), exitCode: 3, reason: "Error" });

test.each<[replica: Replica, text: string]>([
  [replica("worker", 0, [FAILED], { reason: "Error", message: "no data" }), "Error: no data"],
  [replica("worker", 0, [FAILED, attempt(2)]), "attempt 1 failed after 20s, exited with 3"],
  [replica("worker", 0, [attempt(1)]), ""],
])("says why: %#", (each, text) => {
  expect(causeText(each)).toBe(text);
});
