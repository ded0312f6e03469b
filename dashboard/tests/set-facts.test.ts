import { describe, expect, it } from "vitest";
import { cacheFacts, phaseText, removalText, syncName } from "../src/data/set-facts";

describe("cacheFacts", () => {
  it("returns the known figures only", () => {
    const cacheStatus = { totalFiles: "1,281", totalSize: "1 GiB", diskUsed: "", errorMassage: "no space", other: "x" };
    expect(cacheFacts({ cacheStatus })).toEqual([
      ["Files", "1,281"],
      ["Errors of the servers", "no space"],
    ]);
  });

  it.each([{}, { cacheStatus: null }, { cacheStatus: "text" }, { cacheStatus: { totalFiles: 3 } }])(
    "returns none of %j",
    (nativeStatus) => expect(cacheFacts(nativeStatus)).toEqual([]),
  );
});

describe("syncName", () => {
  it.each([
    [{ jobsName: { syncJobName: "sync-1" } }, "sync-1"],
    [{ jobsName: {} }, null],
    [{}, null],
  ])("of %j", (nativeStatus, name) => expect(syncName(nativeStatus)).toBe(name));
});

describe("the words of a set", () => {
  it("explain each phase and each stage of the removal differently", () => {
    const phases = ["", "Bound", "Mount", "Syncing", "SyncFailed", "PartialReady", "Ready"] as const;
    expect(new Set(phases.map(phaseText)).size).toBe(phases.length);
    const stages = [null, "nodeLabels", "runtime", "pods", "service", "claim", "volume", "gone"] as const;
    expect(new Set(stages.map(removalText)).size).toBe(stages.length);
  });
});
