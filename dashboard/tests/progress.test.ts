import { describe, expect, it } from "vitest";
import { doneShare, type Progress, progressText } from "../src/data/progress";

const progress = (figures: Partial<Progress>): Progress => ({
  filesDone: null,
  filesTotal: null,
  bytesDone: null,
  serversReporting: 1,
  servers: 1,
  ...figures,
});

describe("the progress of an operation", () => {
  it.each([
    ["a warm-up", { filesDone: 20480, filesTotal: 1281167 }, 0.016, "20,480 of 1,281,167 files, 1 %"],
    ["a sync, whose total is unknown", { filesDone: 3, bytesDone: 2 ** 20 }, null, "3 files, 1.0 MiB"],
    ["a removal", { filesDone: 1 }, null, "1 file"],
    ["nearly all", { filesDone: 999, filesTotal: 1000 }, 0.999, "999 of 1,000 files, 99 %"],
    ["all", { filesDone: 1, filesTotal: 1 }, 1, "1 of 1 file, 100 %"],
    ["nothing to do", { filesDone: 0, filesTotal: 0 }, null, "0 of 0 files"],
    ["files that are not counted", { filesTotal: 5 }, null, "of 5 files"],
    ["nothing", {}, null, "files are not counted"],
    ["some servers", { filesDone: 4, serversReporting: 1, servers: 3 }, null, "4 files, as 1 of 3 servers report"],
  ])("of %s", (_, figures, share, text) => {
    const found = doneShare(progress(figures));
    if (share === null) expect(found).toBeNull();
    else expect(found).toBeCloseTo(share, 3);
    expect(progressText(progress(figures))).toBe(text);
  });
});
