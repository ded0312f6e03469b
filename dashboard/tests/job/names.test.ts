import { expect, test } from "vitest";
import { type Exit, exitText, replicaName, signalName } from "../../src/job/names";

test.each<[Exit, string]>([
  [{ exitCode: 137, signal: null, reason: "OOMKilled" }, "exited with 137 (OOMKilled)"],
  [{ exitCode: 137, signal: 9, reason: "Error" }, "exited with 137 (SIGKILL)"],
  [{ exitCode: 143, reason: "Error" }, "exited with 143 (SIGTERM)"],
  [{ exitCode: 1, reason: "Error" }, "exited with 1"],
  [{ exitCode: 0, reason: "Completed" }, "exited with 0"],
  [{ exitCode: null, signal: 11, reason: null }, "was ended by SIGSEGV"],
  [{ exitCode: null, signal: 40, reason: "Error" }, "was ended by signal 40 (Error)"],
  [{ exitCode: null, reason: "Evicted" }, "ended (Evicted)"],
  [{ exitCode: null, reason: null }, ""],
])("%o is %j", (exit, text) => {
  expect(exitText(exit)).toBe(text);
});

test.each([
  [1, null, ""],
  [200, null, ""],
  [139, null, "SIGSEGV"],
  [0, 15, "SIGTERM"],
])("exit code %s and signal %s mean %j", (exitCode, signal, name) => {
  expect(signalName(exitCode, signal)).toBe(name);
});

test.each([
  ["worker", 3, "worker[3]"],
  ["worker", null, "worker"],
  [null, null, ""],
])("task %s and rank %s are %j", (task, rank, name) => {
  expect(replicaName(task, rank)).toBe(name);
});
