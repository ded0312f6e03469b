import { describe, expect, it } from "vitest";
import type { AutoscalerRun, Capacity, ScalingDecision } from "../src/api/types";
import { cpuText, memoryText, percentText, requestText, shareOf } from "../src/autoscaler/amounts";
import { isNotable, runText, seriesOf, timeRange } from "../src/autoscaler/series";

describe("amounts", () => {
  it.each([
    [0, "0 CPU"],
    [500, "500m"],
    [1000, "1 CPU"],
    [7760, "7.76 CPU"],
    [12_345, "12.3 CPU"],
  ])("%i thousandths of a CPU", (milli, text) => expect(cpuText(milli)).toBe(text));

  it.each([
    [67, "67 MB"],
    [8200, "8.2 GB"],
    [2_000_000, "2 TB"],
  ])("%i million bytes", (mega, text) => expect(memoryText(mega)).toBe(text));

  it.each([
    [{ cpuMilli: 500, memoryMega: 200, gpu: 0 }, "500m CPU, 200 MB"],
    [{ cpuMilli: 2000, memoryMega: 4000, gpu: 1 }, "2 CPU, 4 GB, 1 GPU"],
  ])("the requests %j", (amount, text) => expect(requestText(amount)).toBe(text));

  it.each([
    [0.053, "5.3 %"],
    [0.97, "97 %"],
    [1.134, "113 %"],
  ])("the share %d", (share, text) => expect(percentText(share)).toBe(text));
});

function capacity(cpuMilli: number, memoryMega: number): Capacity {
  return {
    total: { cpuMilli: 8000, memoryMega: 1000, gpu: 0 },
    requested: { cpuMilli, memoryMega, gpu: 0 },
    nodes: 1,
    openNodes: 1,
    unboundPods: 0,
    namespaces: [],
  };
}

describe("shareOf", () => {
  it("may exceed 1, and is null without the resource", () => {
    expect(shareOf(capacity(8800, 250), "cpu")).toBe(1.1);
    expect(shareOf(capacity(8800, 250), "memory")).toBe(0.25);
    expect(shareOf(capacity(8800, 250), "gpu")).toBeNull();
  });
});

const decision = (fromReplicas: number, toReplicas: number, applied: boolean): ScalingDecision =>
  ({ fromReplicas, toReplicas, applied }) as ScalingDecision;

function run(id: number, change: Partial<AutoscalerRun> = {}): AutoscalerRun {
  const settings = { enabled: true, maxLoad: 0.9, periodSeconds: 30, freezeSeconds: 60 };
  const at = `2026-01-01T00:00:0${id}Z`;
  return { id, at, settings, error: null, capacity: null, waiting: [], decisions: [], ...change };
}

describe("seriesOf", () => {
  it("sorts the runs by time, once each, with gaps where the cluster could not be read", () => {
    const second = run(2, { capacity: capacity(4000, 500), decisions: [decision(1, 2, true)] });
    const runs = [run(3, { capacity: capacity(8000, 100) }), second, run(1), second];
    expect(seriesOf(runs)).toEqual({
      times: [1_767_225_601, 1_767_225_602, 1_767_225_603],
      cpu: [null, 0.5, 1],
      memory: [null, 0.5, 0.1],
      maxLoad: [0.9, 0.9, 0.9],
      resized: [null, 0.5, null],
    });
  });

  it("has empty columns without runs", () => expect(seriesOf([]).times).toEqual([]));
});

describe("a run", () => {
  it.each([
    [{ error: "no right to list nodes" }, "no decision: no right to list nodes", true],
    [{}, "no elastic job", false],
    [{ decisions: [decision(1, 1, false)] }, "no change", false],
    [{ decisions: [decision(1, 2, true)] }, "1 job resized", true],
    [{ decisions: [decision(1, 2, true), decision(2, 1, true)] }, "2 jobs resized", true],
    [{ decisions: [decision(1, 2, false)] }, "1 not resized", true],
    [{ decisions: [decision(1, 2, true), decision(2, 1, false)] }, "1 resized, 1 not resized", true],
  ])("%j", (change, text, notable) => {
    expect(runText(run(1, change))).toBe(text);
    expect(isNotable(run(1, change))).toBe(notable);
  });
});

it.each([
  [100, 700, [100, 700]],
  [100, 100, [40, 160]],
])("the chart shows the times from %d to %d as %j", (first, last, shown) => {
  expect(timeRange(first, last)).toEqual(shown);
});
