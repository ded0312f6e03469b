import { expect, test } from "vitest";
import { type Page, readAll } from "../../src/job/reads";

test("reads all pages, also after one that is empty", async () => {
  const pages: Record<string, Page<number>> = {
    first: { items: [1, 2], nextPageToken: "second" },
    second: { items: [], nextPageToken: "third" },
    third: { items: [3], nextPageToken: null },
  };
  const sizes: number[] = [];
  const items = await readAll<number>(async ({ pageSize, pageToken = "first" }) => {
    sizes.push(pageSize);
    return pages[pageToken] ?? { items: [], nextPageToken: null };
  });
  expect(items).toEqual([1, 2, 3]);
  expect(sizes).toEqual([500, 500, 500]);
});
