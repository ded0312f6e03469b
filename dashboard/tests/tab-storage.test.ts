import { describe, expect, it } from "vitest";
import { ForgivingStorage } from "../src/session/tab-storage";
import { smallStorage } from "./small-storage";

function denied(): Storage {
  throw new DOMException("denied", "SecurityError");
}

const always = (storage: Storage) => () => storage;

describe("a storage that does not take everything", () => {
  const full = smallStorage(3);
  it.each([
    ["denied", new ForgivingStorage(denied)],
    ["full", new ForgivingStorage(always(full))],
    ["large enough", new ForgivingStorage(always(smallStorage(1000)))],
  ])("%s: what was set is read until it is removed", (_, storage) => {
    storage.setItem("draft", "old");
    storage.setItem("draft", "a longer one");
    storage.setItem("token", "t");
    expect(storage.getItem("draft")).toBe("a longer one");
    storage.removeItem("draft");
    expect(storage.getItem("draft")).toBeNull();
    storage.clear();
    expect(storage.getItem("token")).toBeNull();
  });

  it("keeps no older value than the last one", () => {
    const storage = new ForgivingStorage(always(full));
    storage.setItem("draft", "old");
    storage.setItem("draft", "a longer one");
    expect(full.getItem("draft")).toBeNull();
    expect(storage.getItem("draft")).toBe("a longer one");
    storage.setItem("draft", "new");
    expect(storage.getItem("draft")).toBe("new");
    expect(full.getItem("draft")).toBe("new");
  });
});
