import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "../src/api/problems";
import type { Transport } from "../src/api/transport";
import { LogFollower } from "../src/job/logs/follower";
import type { Target } from "../src/job/logs/selection";

const ONE: Target = { kind: "one", task: "worker", rank: 0, attempt: 1, container: null };
const LIVE = { "Jobgate-Log-Source": "live", "Jobgate-Log-Truncated": "false" };
const STORED = { "Jobgate-Log-Source": "stored", "Jobgate-Log-Truncated": "true" };

/** An answer. `isWhole` is false if the gateway ends it early. */
interface Answer {
  headers: Record<string, string>;
  body: string;
  isWhole: boolean;
  /** What follows the body after a pause. */
  later?: string;
}

/** Answers the requests in turn, and records their parameters. After the last answer, requests are never answered. */
function transportOf(answers: (Answer | ApiError)[]): { transport: Transport; requests: URLSearchParams[] } {
  const requests: URLSearchParams[] = [];
  const get = (path: string) => {
    requests.push(new URL(path, "http://gateway").searchParams);
    const answer = answers[requests.length - 1];
    if (answer === undefined) return new Promise<Response>(() => undefined);
    return answer instanceof ApiError ? Promise.reject(answer) : Promise.resolve(responseOf(answer));
  };
  return { transport: { get } as unknown as Transport, requests };
}

function responseOf({ headers, body, isWhole, later }: Answer): Response {
  const chunks = later === undefined ? [body] : [body, later];
  let sent = 0;
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (sent === 1 && later !== undefined) await new Promise((resolve) => setTimeout(resolve, 3000));
        const chunk = chunks[sent];
        sent += 1;
        if (chunk !== undefined) controller.enqueue(new TextEncoder().encode(chunk));
        else if (isWhole) controller.close();
        else controller.error(new TypeError("network error"));
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(stream, { headers });
}

async function followed(
  answers: (Answer | ApiError)[],
  target: Target = ONE,
  isGrowing = true,
  replicas: string[] = [],
) {
  const { transport, requests } = transportOf(answers);
  const follower = new LogFollower(transport, { uid: "a-b", target, tailLines: 100, isGrowing });
  follower.replicas = replicas;
  follower.start();
  await vi.advanceTimersByTimeAsync(5000);
  follower.stop();
  const texts = follower.ring.last(100).map((line) => line.text);
  return { state: follower.state.get(), texts, requests };
}

const at = (second: number, text: string) => `2026-01-02T03:04:0${second}.000000000Z ${text}\n`;

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("document", { addEventListener: vi.fn(), removeEventListener: vi.fn(), hidden: false });
  vi.stubGlobal("requestAnimationFrame", (draw: () => void) => setTimeout(draw));
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("a log that the gateway sends whole has ended", async () => {
  const { state, texts, requests } = await followed([{ headers: LIVE, body: at(1, "a") + at(2, "b"), isWhole: true }]);
  expect(texts).toEqual(["a", "b"]);
  expect(state).toMatchObject({ phase: "ended", interruption: null, source: { isLive: true } });
  expect(requests.map(String)).toEqual(["task=worker&rank=0&attempt=1&follow=true&tailLines=100&timestamps=true"]);
});

test("a log to which nothing is added is not followed", async () => {
  const target: Target = { kind: "merged", task: null };
  const { requests } = await followed([{ headers: {}, body: "", isWhole: true }], target, false);
  expect(requests.map(String)).toEqual(["merged=true&tailLines=100&timestamps=true"]);
});

test("a log that is cut off is continued without repetition", async () => {
  const cutOff = `${at(1, "a")}${at(2, "b")}\n[jobgate] the log is cut off here: the process stops\n`;
  const { state, texts, requests } = await followed([
    { headers: LIVE, body: cutOff, isWhole: false },
    { headers: LIVE, body: at(2, "b") + at(3, "c"), isWhole: true },
  ]);
  expect(texts).toEqual(["a", "b", "c"]);
  expect(state).toMatchObject({ phase: "ended", hasGap: false });
  expect(requests[1]?.get("sinceTime")).toBe("2026-01-02T03:04:02.000000Z");
});

test("a log that breaks off after a silence is continued from the last line that arrived", async () => {
  const { texts, requests } = await followed([
    { headers: LIVE, body: at(1, "a"), later: "", isWhole: false },
    { headers: LIVE, body: at(1, "a") + at(2, "b") + at(3, "c"), isWhole: true },
  ]);
  expect(texts).toEqual(["a", "b", "c"]);
  // The connection may have died when the silence began, while older lines were on their way.
  expect(requests[1]?.get("sinceSeconds")).toBeNull();
  expect(requests[1]?.get("sinceTime")).toBe("2026-01-02T03:04:01.000000Z");
});

test("a log that is cut off says why until it continues", async () => {
  const body = `${at(1, "a")}\n[jobgate] the log is cut off here: the process stops\n`;
  const { state } = await followed([{ headers: LIVE, body, isWhole: false }]);
  expect(state).toMatchObject({ phase: "interrupted", interruption: "the process stops" });
});

test("half a line at an interruption is read again", async () => {
  const { texts } = await followed([
    { headers: LIVE, body: `${at(1, "a")}2026-01-02T03:04:02.000000000Z hal`, isWhole: false },
    { headers: LIVE, body: at(1, "a") + at(2, "half"), isWhole: true },
  ]);
  expect(texts).toEqual(["a", "half"]);
});

test.each([
  ["a\nb\nc\n", ["a", "b", "c"], false],
  ["x\ny\n", ["a", "b", "x", "y"], true],
])("a live log goes on with the stored one %j", async (stored, expected, hasGap) => {
  const { state, texts } = await followed([
    { headers: LIVE, body: at(1, "a") + at(2, "b"), isWhole: false },
    { headers: STORED, body: stored, isWhole: true },
  ]);
  expect(texts).toEqual(expected);
  expect(state).toMatchObject({ phase: "ended", hasGap, source: { isLive: false, isTruncated: true } });
});

test("a line of a stored log that looks like the end is a line", async () => {
  const body = "[jobgate] the log is cut off here: says the program\n";
  const { state, texts } = await followed([{ headers: STORED, body, isWhole: true }]);
  expect(texts).toEqual([body.trim()]);
  expect(state.phase).toBe("ended");
});

test.each([
  [new ApiError(404, "NoLog", "there is no log yet"), "waiting", 1],
  [new ApiError(404, "NotFound", "there is no such job"), "failed", 1],
  [new ApiError(403, "Forbidden", "the role does not allow it"), "failed", 1],
  [new ApiError(503, "Unavailable", "the cluster does not answer"), "interrupted", 2],
  [new ApiError(0, "NoAnswer", "the gateway does not answer"), "interrupted", 2],
])("the answer %s leads to the phase %s after %i requests", async (error, phase, count) => {
  const { state, requests } = await followed([error]);
  expect(requests).toHaveLength(count);
  expect(state.phase).toBe(phase);
});

test.each([
  [["w[0]", "w[1]"], "2026-01-02T03:04:02.123456Z"],
  [["w[0]", "w[1]", "w[2]"], null],
])("a merged log of %j is continued from the oldest of the last lines, if each has one", async (replicas, since) => {
  const line = (rank: number, attempt: number, second: number) =>
    `${JSON.stringify({ task: "w", rank, attempt, at: `2026-01-02T03:04:0${second}.123456789Z`, line: `${rank}:${second}` })}\n`;
  const first = line(0, 1, 1) + line(0, 2, 4) + line(1, 1, 2);
  const second = line(0, 2, 4) + line(1, 1, 2) + line(1, 1, 3);
  const { texts, requests } = await followed(
    [
      { headers: {}, body: first, isWhole: false },
      { headers: {}, body: second, isWhole: true },
    ],
    { kind: "merged", task: null },
    true,
    replicas,
  );
  expect(texts).toEqual(["0:1", "0:4", "1:2", "1:3"]);
  expect(requests[1]?.get("sinceTime")).toBe(since);
});

test("a merged log has the lines of its replicas, and what it leaves out", async () => {
  const line = (rank: number, text: string) =>
    `${JSON.stringify({ task: "w", rank, attempt: 1, at: "2026-01-02T03:04:05Z", line: text })}\n`;
  const headers = { "Jobgate-Log-Left-Out": "w[2-9]" };
  const body = line(0, "a") + line(1, "b");
  const { state, texts } = await followed([{ headers, body, isWhole: true }], { kind: "merged", task: null });
  expect(texts).toEqual(["a", "b"]);
  expect(state).toMatchObject({ phase: "ended", leftOut: "w[2-9]", source: null });
});
