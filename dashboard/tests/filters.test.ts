import { describe, expect, it } from "vitest";
import { filtersOf, isFiltered, listParameters, queryOf, toggled } from "../src/jobs/filters";

const NOW = Date.parse("2026-01-02T00:00:00Z");

describe("filters", () => {
  it.each([
    ["", {}],
    ["phase=Running&phase=Failed", { phase: ["Running", "Failed"] }],
    ["namespace=a&kind=MxJob", { namespace: ["a"], kind: ["MxJob"] }],
    ["label=team%3Dvision", { labelSelector: "team=vision" }],
    ["text=bert", { search: "bert" }],
    ["queue=team", { queue: "team" }],
    ["owner=me", { createdBy: "me" }],
    ["since=24h", { createdAfter: "2026-01-01T00:00:00.000Z" }],
    ["since=never&phase=&phase=Sleeping&kind=Pod", {}],
  ])("the address %j selects %j", (address, parameters) => {
    expect(listParameters(filtersOf(new URLSearchParams(address)), NOW)).toEqual(parameters);
  });

  it("returns to the same address", () => {
    const address =
      "namespace=a&kind=MxJob&phase=Running&phase=Failed&label=team%3Dvision&text=bert&queue=team&since=24h&owner=me";
    expect(queryOf(filtersOf(new URLSearchParams(address))).toString()).toBe(address);
  });

  it("adds and removes a value", () => {
    const none = filtersOf(new URLSearchParams());
    const running = toggled(none, "phase", "Running");
    expect([isFiltered(none), isFiltered(running)]).toEqual([false, true]);
    expect(toggled(running, "phase", "Running")).toEqual(none);
  });
});
