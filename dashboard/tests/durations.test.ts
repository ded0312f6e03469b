import { describe, expect, it } from "vitest";
import { duration, elapsed } from "../src/ui/durations";

describe("duration", () => {
  it.each([
    [-5, "0s"],
    [0, "0s"],
    [119_999, "119s"],
    [120_000, "2m"],
    [250_000, "4m10s"],
    [3_600_000, "60m"],
    [7_500_000, "2h5m"],
    [36_000_000, "10h"],
    [183_600_000, "2d3h"],
    [864_000_000, "10d"],
  ])("%i ms is %s", (milliseconds, text) => {
    expect(duration(milliseconds)).toBe(text);
  });
});

describe("elapsed", () => {
  it.each([
    [null, null, ""],
    ["2026-01-01T00:00:00Z", "2026-01-01T00:00:30Z", "30s"],
    ["2026-01-01T00:00:00Z", null, "60s"],
  ])("from %j to %j is %j", (start, end, text) => {
    expect(elapsed(start, end, Date.parse("2026-01-01T00:01:00Z"))).toBe(text);
  });
});
