import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "../src/api/problems";
import type { ChangeListener, Changes } from "../src/live/changes";
import { type ListReader, LiveList, type Page } from "../src/live/list";
import type { Change, Row } from "../src/live/rows";

type Answer<T> = { resolve: (value: T) => void; reject: (error: Error) => void };

/** A gateway whose answers a test gives one by one. */
class Gateway implements ListReader<Row> {
  pages: Answer<Page<Row>>[] = [];
  finds: ({ uids: string[] } & Answer<Row[]>)[] = [];
  listener: ChangeListener<Change> | null = null;

  readonly changes = {
    subscribe: (listener: ChangeListener<Change>) => {
      this.listener = listener;
      return () => undefined;
    },
  } as unknown as Changes<Change>;

  page(): Promise<Page<Row>> {
    return new Promise((resolve, reject) => this.pages.push({ resolve, reject }));
  }

  byUid(uids: string[]): Promise<Row[]> {
    return new Promise((resolve, reject) => this.finds.push({ uids, resolve, reject }));
  }

  change(uid: string, phase: string): void {
    this.listener?.onChange({ uid, generation: 1, deletedAt: null, status: { phase } }, "status");
  }
}

function row(uid: string, phase: string): Row {
  return { uid, createdAt: "2026-01-01T00:00:00Z", deletedAt: null, status: { phase } };
}

describe("LiveList", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  function started(): { gateway: Gateway; phases: () => string[] } {
    const gateway = new Gateway();
    const list = new LiveList<Row, Change>(gateway.changes, gateway, []);
    list.start();
    return { gateway, phases: () => list.state.get().rows.items.map((each) => `${each.uid} ${each.status.phase}`) };
  }

  it("keeps a change that arrives while an older page is on its way", async () => {
    const { gateway, phases } = started();
    gateway.change("a", "Succeeded");
    await vi.advanceTimersByTimeAsync(1000);
    gateway.pages[0]?.resolve({ items: [row("a", "Running")], nextPageToken: null });
    await vi.advanceTimersByTimeAsync(1000);
    expect(phases()).toEqual(["a Succeeded"]);
  });

  it("keeps a change that arrives while an older answer about its object is on its way", async () => {
    const { gateway, phases } = started();
    gateway.pages[0]?.resolve({ items: [], nextPageToken: null });
    gateway.change("new", "Pending");
    await vi.advanceTimersByTimeAsync(1000);
    gateway.change("new", "Succeeded");
    await vi.advanceTimersByTimeAsync(1000);
    gateway.finds[0]?.resolve([row("new", "Pending")]);
    await vi.advanceTimersByTimeAsync(1000);
    expect(phases()).toEqual(["new Succeeded"]);
    expect(gateway.finds).toHaveLength(1);
  });

  it("asks again for objects if the gateway cannot answer now", async () => {
    const { gateway, phases } = started();
    gateway.pages[0]?.resolve({ items: [], nextPageToken: null });
    gateway.change("new", "Pending");
    await vi.advanceTimersByTimeAsync(1000);
    gateway.finds[0]?.reject(new ApiError(503, "Unavailable", "the database does not answer"));
    await vi.advanceTimersByTimeAsync(5000);
    expect(gateway.finds[1]?.uids).toEqual(["new"]);
    gateway.finds[1]?.resolve([row("new", "Running")]);
    await vi.advanceTimersByTimeAsync(1000);
    expect(phases()).toEqual(["new Running"]);
  });
});
