import { describe, expect, it } from "vitest";
import { actorText, identityInShort } from "../src/ui/actors";

describe("identityInShort", () => {
  it.each([
    [null, "identity not recorded"],
    ["controller", "controller"],
    ["token:Zk3vQ8xY1b", "token:Zk3vQ8xY1b"],
    ["user:https://id.example:8443/realms/a#248#9", "user:#248#9"],
    ["job:0b8d2d0e-8a43-4d4c-9d0b-6a1a8a1f8d10", "job:0b8d2d0e-8a43-4d4c-9d0b-6a1a8a1f8d10"],
  ])("%s", (id, text) => expect(identityInShort(id)).toBe(text));
});

describe("actorText", () => {
  it.each([
    [{ name: "anonymous", id: "anonymous" }, "anonymous"],
    [{ name: "ci", id: "token:Zk3vQ8xY1b" }, "ci (token:Zk3vQ8xY1b)"],
    [{ name: "ci", id: null }, "ci (identity not recorded)"],
  ])("%j", (actor, text) => expect(actorText(actor)).toBe(text));
});
