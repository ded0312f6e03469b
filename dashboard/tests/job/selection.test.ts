import { expect, test } from "vitest";
import {
  countedBy,
  filtered,
  filtersOf,
  type Selection,
  selectionOf,
  toggledFilter,
  withSelection,
} from "../../src/job/replicas/selection";
import { attempt, replica } from "./builders";

test.each<[query: string, selection: Selection | null]>([
  ["replica=worker/3", { task: "worker", rank: 3, attempt: null }],
  ["replica=worker/3&attempt=2", { task: "worker", rank: 3, attempt: 2 }],
  ["replica=a/b/0", { task: "a/b", rank: 0, attempt: null }],
  ["replica=worker/x", null],
  ["replica=/1", null],
  ["replica=worker", null],
  ["", null],
])("reads %j", (query, selection) => {
  expect(selectionOf(new URLSearchParams(query))).toEqual(selection);
});

test("a selection keeps the filters, and its end removes it", () => {
  const query = withSelection(new URLSearchParams("task=worker&phase=Failed"), { task: "worker", rank: 3, attempt: 2 });
  expect(query.toString()).toBe("task=worker&phase=Failed&replica=worker%2F3&attempt=2");
  expect(withSelection(query, null).toString()).toBe("task=worker&phase=Failed");
});

test("a filter is added and removed", () => {
  const query = toggledFilter(new URLSearchParams("phase=Failed"), "phase", "Running");
  expect(filtersOf(query)).toEqual({ task: [], phase: ["Failed", "Running"] });
  expect(filtersOf(toggledFilter(query, "phase", "Failed"))).toEqual({ task: [], phase: ["Running"] });
});

test("filters and counts replicas", () => {
  const replicas = [
    replica("server", 0, [attempt(1, { phase: "Failed" })]),
    replica("worker", 0, [attempt(1, { phase: "Failed" })]),
    replica("worker", 1, [attempt(1)]),
  ];
  const failed = filtered(replicas, { task: ["worker"], phase: ["Failed", "Pending"] });
  expect(failed.map(({ task, rank }) => [task, rank])).toEqual([["worker", 0]]);
  expect(filtered(replicas, { task: [], phase: [] })).toHaveLength(3);
  expect(countedBy(replicas, "phase")).toEqual({ Failed: "2", Running: "1" });
});
