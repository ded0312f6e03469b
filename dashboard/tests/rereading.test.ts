import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { PERIOD, Rereading } from "../src/ui/rereading";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("reads at once after the first request, and once after the others", async () => {
  const read = vi.fn();
  const rereading = new Rereading(read);
  for (let count = 0; count < 5; count += 1) rereading.request();
  expect(read).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(PERIOD);
  expect(read).toHaveBeenCalledTimes(2);
  await vi.advanceTimersByTimeAsync(10 * PERIOD);
  expect(read).toHaveBeenCalledTimes(2);
});

test("a slow read ends before the next one begins", async () => {
  const read = vi.fn(() => new Promise<void>((resolve) => setTimeout(resolve, 5 * PERIOD)));
  const rereading = new Rereading(read);
  rereading.request();
  await vi.advanceTimersByTimeAsync(4 * PERIOD);
  rereading.request();
  expect(read).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(2 * PERIOD);
  expect(read).toHaveBeenCalledTimes(2);
});

test.each([
  ["while it rests", 1],
  ["while it is idle", 2 * PERIOD],
])("reads nothing after its end %s", async (_, age) => {
  const read = vi.fn();
  const rereading = new Rereading(read);
  rereading.request();
  await vi.advanceTimersByTimeAsync(age);
  if (age < PERIOD) rereading.request();
  rereading.end();
  rereading.request();
  await vi.advanceTimersByTimeAsync(2 * PERIOD);
  expect(read).toHaveBeenCalledTimes(1);
});
