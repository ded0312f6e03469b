import { describe, expect, it } from "vitest";
import type { UsageGroup, Uses } from "../src/api/types";
import { barsOf, daysUntil, hoursText, resourcesOf, restText, scaleOf, shareText, unitOf } from "../src/usage/usage";

function uses(useful: number, repeated = 0): Uses {
  return { useful, repeated, disrupted: 0, idle: 0, total: useful + repeated };
}

function group(day: string, resources: Record<string, Uses>): UsageGroup {
  const dimensions = { namespace: null, user: null, queue: null, kind: null, labels: {} };
  return { ...dimensions, day, queuedSeconds: 0, resources, cost: null };
}

describe("days", () => {
  it("end today, in UTC", () => {
    const now = Date.parse("2026-03-01T00:30:00Z");
    expect(daysUntil(now, 1)).toEqual(["2026-03-01", "2026-03-01"]);
    expect(daysUntil(now, 30)).toEqual(["2026-01-31", "2026-03-01"]);
  });
});

describe("bars", () => {
  it("has one for each day, also without usage", () => {
    const bars = barsOf([group("2026-01-02", { cpu: uses(7200, 3600) })], "cpu", "2026-01-01", "2026-01-03");
    expect(bars.map(({ day, total }) => [day, total])).toEqual([
      ["2026-01-01", 0],
      ["2026-01-02", 3],
      ["2026-01-03", 0],
    ]);
    expect(bars[1]?.hours).toEqual({ useful: 2, repeated: 1, disrupted: 0, idle: 0 });
  });

  it("counts memory in GiB", () => {
    const [bar] = barsOf([group("2026-01-01", { memory: uses(3600 * 2 ** 31) })], "memory", "2026-01-01", "2026-01-01");
    expect(bar?.total).toBe(2);
  });

  it.each([
    [0, 1],
    [0.03, 0.05],
    [1, 1],
    [3, 5],
    [70, 100],
    [1200, 2000],
  ])("of %d have a scale up to %d", (total, scale) => {
    const hours = { useful: total, repeated: 0, disrupted: 0, idle: 0 };
    expect(scaleOf([{ day: "2026-01-01", hours, total }])).toBeCloseTo(scale, 9);
  });
});

describe("texts", () => {
  it("puts CPU and memory first", () => {
    const found = resourcesOf([group("a", { "a.b/gpu": uses(1), memory: uses(1) }), group("b", { cpu: uses(1) })]);
    expect(found).toEqual(["cpu", "memory", "a.b/gpu"]);
  });

  it.each([
    [0, "0"],
    [0.001, "< 0.01"],
    [1.234, "1.23"],
    [12.34, "12.3"],
    [1234.5, "1 235"],
  ])("says %d hours as %s", (hours, text) => {
    expect(hoursText(hours)).toBe(text);
  });

  it.each([
    [0, 0, ""],
    [0, 5, "0 %"],
    [1, 500, "< 1 %"],
    [1, 3, "33 %"],
  ])("says %d of %d as %s", (part, whole, text) => {
    expect(shareText(part, whole)).toBe(text);
  });

  it("says that groups are missing", () => {
    const items = [group("a", {}), group("b", {})];
    expect(restText({ items, nextPageToken: null })).toBe(null);
    expect(restText({ items, nextPageToken: "next" })).toBe("These are the first 2 by name. The CSV has all.");
  });

  it("names the unit", () => {
    expect(["cpu", "memory", "a.b/gpu"].map(unitOf)).toEqual(["core hours", "GiB hours of memory", "hours of a.b/gpu"]);
  });
});
