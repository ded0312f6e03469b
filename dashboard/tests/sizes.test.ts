import { describe, expect, it } from "vitest";
import { cachedShare, cachedText, nodeShare, nodeText, sizeText } from "../src/data/sizes";

const GIB = 2 ** 30;
const cache = (cachedBytes: number, totalBytes: number, whole = false) => ({
  cachedBytes,
  totalBytes,
  whole,
  observedAt: null,
});

describe("sizeText", () => {
  it.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.0 KiB"],
    [1.5 * GIB, "1.5 GiB"],
    [2 ** 20 - 1, "1.0 MiB"],
    [3 * 2 ** 60, "3.0 EiB"],
    [2 ** 71, "2048.0 EiB"],
  ])("%d bytes", (bytes, text) => expect(sizeText(bytes)).toBe(text));
});

describe("the cache of a node", () => {
  it.each([
    ["a part", GIB / 2, 2 * GIB, 0.25, "512.0 MiB, 25 % of the data"],
    ["nothing", 0, 2 * GIB, 0, "0 B, 0 % of the data"],
    ["more than the data", 3 * GIB, 2 * GIB, 1, "3.0 GiB, 100 % of the data"],
    ["a part of data of unknown size", GIB, null, null, "1.0 GiB"],
    ["old data of an empty volume", GIB, 0, null, "1.0 GiB"],
    ["an unknown part", null, 2 * GIB, null, "not known"],
  ])("is %s", (_, cachedBytes, totalBytes, share, text) => {
    const node = { node: "n0", server: "s-runtime-0", cachedBytes, message: "" };
    expect(nodeShare(node, totalBytes)).toBe(share);
    expect(nodeText(node, totalBytes)).toBe(text);
  });
});

describe("a cache", () => {
  it.each([
    ["partly", cache(1.5 * GIB, 2 * GIB), 0.75, "1.5 GiB of 2.0 GiB, 75 %"],
    ["not", cache(0, 2 * GIB), 0, "0 B of 2.0 GiB, 0 %"],
    ["nearly", cache(1999, 2000), 0.9995, "2.0 KiB of 2.0 KiB, 99 %"],
    ["whole", cache(2 * GIB, 2 * GIB, true), 1, "2.0 GiB of 2.0 GiB, 100 %"],
    ["several times", cache(4 * GIB, 2 * GIB, true), 1, "4.0 GiB of 2.0 GiB, all; several nodes have the same data"],
    ["without data", cache(0, 0), 0, "no data"],
  ])("is %s full", (_, figures, share, text) => {
    expect(cachedShare(figures)).toBeCloseTo(share, 6);
    expect(cachedText(figures)).toBe(text);
  });
});
