import { expect, test } from "vitest";
import type { AutoscalerRun } from "../../src/api/types";
import { decisionsAbout } from "../../src/job/scaling/decisions";
import { at } from "./builders";

type Decision = AutoscalerRun["decisions"][number];

function decision(changes: Partial<Decision> = {}): Decision {
  return {
    uid: "job-1",
    namespace: "team-a",
    name: "train",
    phase: "Running",
    task: "trainer",
    fromReplicas: 3,
    toReplicas: 3,
    minReplicas: 1,
    maxReplicas: 3,
    request: { cpuMilli: 1000, memoryMega: 100, gpu: 0 },
    verdict: "AtMax",
    message: "stays at 3",
    applied: false,
    refusal: null,
    ...changes,
  };
}

function run(id: number, decisions: Decision[]): AutoscalerRun {
  const settings = { enabled: true, maxLoad: 0.9, periodSeconds: 30, freezeSeconds: 600 };
  return { id, at: at(id), settings, error: null, capacity: null, waiting: [], decisions };
}

test("joins equal decisions in a row, and leaves out those about other jobs", () => {
  const grown = decision({ fromReplicas: 2, verdict: "Grows", applied: true });
  const runs = [
    run(5, [decision(), decision({ uid: "job-2" })]),
    run(4, []),
    run(3, [decision({ message: "stays at 3, still" })]),
    run(2, [grown]),
    run(1, [grown]),
    run(0, [{ ...grown, applied: false }]),
  ];
  expect(
    decisionsAbout("job-1", runs).map(({ decision: { verdict }, since, until, runs: count }) => [
      verdict,
      since,
      until,
      count,
    ]),
  ).toEqual([
    ["AtMax", at(3), at(5), 2],
    ["Grows", at(2), at(2), 1],
    ["Grows", at(1), at(1), 1],
    ["Grows", at(0), at(0), 1],
  ]);
});
