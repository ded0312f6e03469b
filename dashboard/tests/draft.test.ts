import { describe, expect, it } from "vitest";
import {
  attempted,
  drawKey,
  EMPTY_DRAFT,
  edited,
  loadDraft,
  saveDraft,
  succeeded,
  withAppended,
} from "../src/submit/draft";
import { smallStorage } from "./small-storage";

const draft = { text: "a", namespace: "n", key: "k" };

describe("the key of an attempt", () => {
  it.each([
    ["stays when nothing changes", edited(draft, { text: "a", namespace: "n" }), "k"],
    ["goes with a changed text", edited(draft, { text: "b" }), null],
    ["goes with a changed namespace", edited(draft, { namespace: "m" }), null],
    ["stays for a repeated attempt", attempted(draft, () => "other"), "k"],
    ["is drawn for the first attempt", attempted({ ...draft, key: null }, () => "new"), "new"],
    ["goes with success", succeeded(draft), null],
  ])("%s", (_, changed, key) => expect(changed.key).toBe(key));

  it("is different for each draw", () => {
    expect(drawKey()).toMatch(/^[0-9a-f]{32}$/);
    expect(drawKey()).not.toBe(drawKey());
  });
});

describe("the stored draft", () => {
  it("is read again", () => {
    const place = smallStorage(1000);
    saveDraft(place, draft);
    expect(loadDraft(place)).toEqual(draft);
  });

  it("is empty rather than old if the new one does not fit", () => {
    const place = smallStorage(60);
    saveDraft(place, draft);
    saveDraft(place, { ...draft, text: "x".repeat(100) });
    expect(loadDraft(place)).toEqual(EMPTY_DRAFT);
  });

  it.each(["", "null", "[1", '"text"', '{"text": 1}'])("is empty if the storage contains %j", (content) => {
    expect(loadDraft(smallStorage(1000, { "jobgate.draft": content }))).toEqual(EMPTY_DRAFT);
  });
});

describe("withAppended", () => {
  it.each([
    ["", [], ""],
    ["", ["a: 1\r\nb: 2"], "a: 1\nb: 2\n"],
    ["a: 1\n\n", ["b: 1\n", " ", "c: 1"], "a: 1\n---\nb: 1\n---\nc: 1\n"],
  ])("adds to %j the documents %j", (text, added, expected) => expect(withAppended(text, added)).toBe(expected));
});
