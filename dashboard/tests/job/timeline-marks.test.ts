import { expect, test } from "vitest";
import { marksOf, phaseSpans, placedMarks } from "../../src/job/timeline/marks";
import { at, entry, job, scaleRecord } from "./builders";

const ms = (seconds: number) => Date.parse(at(seconds));

test("marks scale records, pauses and requests in the order of time", () => {
  const records = [scaleRecord(1, 30, { reason: "faster", outcome: "Refused", message: "quota" }), scaleRecord(2, 50)];
  const history = [
    entry(1, 1, { reason: "Submitted" }),
    entry(2, 20, { reason: "PauseRequested", actor: "alice", actorId: "token:Zk3vQ8xY1b", message: "lunch" }),
    entry(3, 25, { reason: "Paused", phase: "Paused" }),
    entry(4, 40, { reason: "Paused", task: "worker", rank: 0 }),
  ];
  expect(marksOf(records, history)).toEqual([
    { at: ms(20), kind: "request", label: "pause", detail: "PauseRequested by alice (token:Zk3vQ8xY1b): lunch" },
    { at: ms(25), kind: "phase", label: "paused", detail: "Paused by jobgate (controller)" },
    {
      at: ms(30),
      kind: "scale",
      label: "worker 2 → 3",
      detail: "alice (token:Zk3vQ8xY1b) scaled worker from 2 to 3 (faster), Refused: quota",
    },
    {
      at: ms(50),
      kind: "scale",
      label: "worker 2 → 3",
      detail: "alice (token:Zk3vQ8xY1b) scaled worker from 2 to 3, in progress",
    },
  ]);
});

test("derives the phases from the history", () => {
  const history = [
    entry(1, 0, { phase: "Queued" }),
    entry(2, 2, { phase: "Creating" }),
    entry(3, 2, { phase: "Pending" }),
    entry(4, 5, { phase: "Running" }),
    entry(5, 8, { phase: "Running", task: "worker", rank: 1 }),
    entry(6, 20, { phase: "Failed" }),
  ];
  expect(phaseSpans(job(), history)).toEqual([
    { phase: "Queued", start: ms(0), end: ms(2) },
    { phase: "Pending", start: ms(2), end: ms(5) },
    { phase: "Running", start: ms(5), end: ms(20) },
    { phase: "Failed", start: ms(20), end: null },
  ]);
});

test("joins marks without room between them, and leaves out those beyond the range", () => {
  const marks = marksOf(
    [5, 20, 21, 22, 90, 130].map((seconds, seq) => scaleRecord(seq, seconds)),
    [],
  );
  const placed = placedMarks(marks, { start: ms(10), end: ms(110) }, 1000);
  expect(placed.map(({ x, label }) => [x, label])).toEqual([
    [100, "worker 2 → 3 +2"],
    [800, "worker 2 → 3"],
  ]);
});
