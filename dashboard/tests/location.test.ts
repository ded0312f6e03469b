import { describe, expect, it } from "vitest";
import { hashOf, parseHash } from "../src/routing/location";

describe("location", () => {
  it.each([
    ["", [], ""],
    ["#/jobs", ["jobs"], ""],
    ["#/jobs?phase=Running", ["jobs"], "phase=Running"],
    ["#/jobs/a%2Fb/logs?q=a%3Fb", ["jobs", "a/b", "logs"], "q=a%3Fb"],
    ["#/jobs?text=why?", ["jobs"], "text=why%3F"],
    ["#/%E0%A4%A", ["%E0%A4%A"], ""],
  ])("%j has the path %j and the query %j", (hash, path, query) => {
    const location = parseHash(hash);
    expect([location.path, location.query.toString()]).toEqual([path, query]);
  });

  it("reads what it writes, whatever the text", () => {
    const path = ["jobs", "a b/c?d#e%"];
    const query = { text: "&=?#%+ é" };
    const location = parseHash(hashOf(path, query));
    expect([location.path, Object.fromEntries(location.query)]).toEqual([path, query]);
  });
});
