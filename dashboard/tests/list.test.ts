import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "../src/api/problems";
import type { ChangeListener, Changes } from "../src/live/changes";
import { LiveList, type Page, type PageParameters } from "../src/live/list";
import type { Change, Row } from "../src/live/rows";

type Answer<T> = { resolve: (value: T) => void; reject: (error: Error) => void };

/** A gateway whose answers a test gives one by one. */
class Gateway {
  pages: ({ parameters: PageParameters } & Answer<Page<Row>>)[] = [];
  finds: ({ uids: string[] } & Answer<Page<Row>>)[] = [];
  listener: ChangeListener<Change> | null = null;

  readonly changes = {
    subscribe: (listener: ChangeListener<Change>) => {
      this.listener = listener;
      return () => undefined;
    },
  } as unknown as Changes<Change>;

  readonly read = (parameters: PageParameters): Promise<Page<Row>> =>
    new Promise((resolve, reject) => {
      const { uid } = parameters;
      if (uid === undefined) this.pages.push({ parameters, resolve, reject });
      else this.finds.push({ uids: uid, resolve, reject });
    });

  answer(rows: Row[], nextPageToken: string | null = null): Promise<unknown> {
    this.pages.at(-1)?.resolve({ items: rows, nextPageToken });
    return vi.advanceTimersByTimeAsync(0);
  }

  /** Say that these objects have been created, and answer the questions about them. */
  async create(created: Row[]): Promise<void> {
    const byUid = new Map(created.map((each) => [each.uid, each]));
    const asked = this.finds.length;
    for (const each of created) this.change(each.uid, each.status.phase);
    await vi.advanceTimersByTimeAsync(1000);
    for (let next = asked; next < this.finds.length; next += 1) {
      const items = this.finds[next]?.uids.map((uid) => byUid.get(uid)).filter((each) => each !== undefined) ?? [];
      this.finds[next]?.resolve({ items, nextPageToken: null });
      await vi.advanceTimersByTimeAsync(0);
    }
  }

  change(uid: string, phase: string): void {
    this.listener?.onChange({ uid, generation: 1, deletedAt: null, status: { phase } }, "status");
  }
}

function row(uid: string, phase: string, createdAt = "2026-01-01T00:00:00Z"): Row {
  return { uid, createdAt, deletedAt: null, status: { phase } };
}

/** Objects with the given numbers, one for each microsecond, the newest first. */
function rowsFrom(first: number, count: number): Row[] {
  return Array.from({ length: count }, (_, index) => {
    const number = first + count - 1 - index;
    return row(`object-${number}`, "Running", `2026-01-01T00:00:00.${String(number).padStart(6, "0")}Z`);
  });
}

describe("LiveList", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  function started() {
    const gateway = new Gateway();
    const list = new LiveList<Row, Change>(gateway.changes, gateway.read, []);
    list.start();
    const items = () => list.state.get().rows.items;
    return { gateway, list, items, phases: () => items().map((each) => `${each.uid} ${each.status.phase}`) };
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
    gateway.finds[0]?.resolve({ items: [row("new", "Pending")], nextPageToken: null });
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
    gateway.finds[1]?.resolve({ items: [row("new", "Running")], nextPageToken: null });
    await vi.advanceTimersByTimeAsync(1000);
    expect(phases()).toEqual(["new Running"]);
  });

  it("reads its first page when an object changes after that page could not be read", async () => {
    const { gateway, list, phases } = started();
    gateway.pages[0]?.reject(new ApiError(503, "Unavailable", "the database does not answer"));
    await vi.advanceTimersByTimeAsync(0);
    gateway.change("a", "Succeeded");
    await vi.advanceTimersByTimeAsync(1000);
    expect([gateway.pages.length, gateway.finds.length]).toEqual([2, 0]);
    await gateway.answer([row("a", "Succeeded")]);
    expect([phases(), list.state.get().error]).toEqual([["a Succeeded"], null]);
  });

  it("says that a page could not be read until it is, whatever the answers about objects are", async () => {
    const { gateway, list } = started();
    await gateway.answer(rowsFrom(1000, 200), "older");
    list.shown(199);
    const error = new ApiError(503, "Unavailable", "the database does not answer");
    gateway.pages[1]?.reject(error);
    await vi.advanceTimersByTimeAsync(0);
    gateway.change("new", "Running");
    await vi.advanceTimersByTimeAsync(1000);
    gateway.finds[0]?.reject(new ApiError(503, "Unavailable", "the gateway stops"));
    await vi.advanceTimersByTimeAsync(5000);
    expect(list.state.get().error).toBe(error);
    gateway.finds[1]?.resolve({ items: [row("new", "Running")], nextPageToken: null });
    await vi.advanceTimersByTimeAsync(0);
    expect(list.state.get().error).toBe(error);
    list.shown(199);
    await gateway.answer(rowsFrom(800, 200));
    expect(list.state.get().error).toBeNull();
  });

  it("says that objects could not be asked for until an answer about objects comes", async () => {
    const { gateway, list } = started();
    await gateway.answer([]);
    gateway.change("new", "Running");
    await vi.advanceTimersByTimeAsync(1000);
    const error = new ApiError(503, "Unavailable", "the database does not answer");
    gateway.finds[0]?.reject(error);
    await vi.advanceTimersByTimeAsync(5000);
    expect(list.state.get().error).toBe(error);
    gateway.finds[1]?.resolve({ items: [], nextPageToken: null });
    await vi.advanceTimersByTimeAsync(0);
    expect(list.state.get().error).toBeNull();
  });

  it("drops rows far below those in view, and reads them again when the reader comes near", async () => {
    const { gateway, list, items } = started();
    await gateway.answer(rowsFrom(1000, 11_000), "older");
    list.shown(20);
    await gateway.create(rowsFrom(20_000, 100));
    expect(items()).toHaveLength(10_020);
    expect(items()[0]?.uid).toBe("object-20099");
    const oldest = items().at(-1);
    list.shown(items().length - 1);
    expect(gateway.pages.at(-1)?.parameters).toEqual({ pageSize: 500, createdBefore: oldest?.createdAt });
    await gateway.answer(rowsFrom(100, 200), "next");
    list.shown(items().length - 1);
    expect(gateway.pages.at(-1)?.parameters).toMatchObject({ pageToken: "next", createdBefore: oldest?.createdAt });
  });

  it("keeps the rows around a reader who has scrolled down", async () => {
    const { gateway, list, items } = started();
    await gateway.answer(rowsFrom(0, 15_000));
    list.shown(14_000);
    await gateway.create(rowsFrom(20_000, 500));
    expect(items()).toHaveLength(15_500);
  });

  it("keeps 100 000 rows, and then reads no older ones", async () => {
    const { gateway, list, items } = started();
    await gateway.answer(rowsFrom(10_000, 100_000), "older");
    list.shown(99_990);
    expect([gateway.pages.length, list.state.get().isFull]).toEqual([1, true]);
    await gateway.create(rowsFrom(200_000, 1100));
    expect(items()).toHaveLength(100_000);
    expect(gateway.pages).toHaveLength(1);
  });

  it("does not append a page that no longer follows the rows", async () => {
    const { gateway, list, items } = started();
    await gateway.answer(rowsFrom(20_000, 15_000), "older");
    for (const each of rowsFrom(40_000, 1)) gateway.change(each.uid, "Running");
    await vi.advanceTimersByTimeAsync(1000);
    list.shown(14_999);
    list.shown(0);
    gateway.finds[0]?.resolve({ items: rowsFrom(40_000, 1), nextPageToken: null });
    await vi.advanceTimersByTimeAsync(0);
    expect(items()).toHaveLength(10_000);
    await gateway.answer(rowsFrom(0, 200), null);
    expect(items()).toHaveLength(10_000);
    expect(list.state.get().isLoading).toBe(false);
  });

  it("reads the next page of a reader at the end after a page that no longer followed the rows", async () => {
    const { gateway, list, items } = started();
    await gateway.answer(rowsFrom(20_000, 15_000), "older");
    for (const each of rowsFrom(40_000, 1)) gateway.change(each.uid, "Running");
    await vi.advanceTimersByTimeAsync(1000);
    list.shown(14_999);
    list.shown(0);
    gateway.finds[0]?.resolve({ items: rowsFrom(40_000, 1), nextPageToken: null });
    await vi.advanceTimersByTimeAsync(0);
    list.shown(9_999);
    await gateway.answer(rowsFrom(0, 200), null);
    expect(gateway.pages.at(-1)?.parameters).toEqual({ pageSize: 500, createdBefore: items().at(-1)?.createdAt });
  });

  it("reads the rows down to those in view again after a gap in the changes", async () => {
    const { gateway, list, items } = started();
    await gateway.answer(rowsFrom(1000, 600), "a");
    list.shown(300);
    gateway.listener?.onReset();
    await gateway.answer(rowsFrom(1400, 200), "b");
    expect(items()).toHaveLength(600);
    await gateway.answer(rowsFrom(1200, 200), "c");
    expect(items()).toHaveLength(400);
    expect(gateway.pages.at(-1)?.parameters.pageToken).toBe("b");
  });

  it("does not ask again about an object that comes with a later page", async () => {
    const { gateway } = started();
    await gateway.answer(rowsFrom(1000, 200), "older");
    await gateway.create(rowsFrom(500, 1));
    await gateway.create(rowsFrom(500, 1));
    expect(gateway.finds).toHaveLength(1);
  });
});
