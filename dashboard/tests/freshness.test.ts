import { describe, expect, it } from "vitest";
import type { Contact } from "../src/api/transport";
import { type ContactState, freshnessAt, NO_CONTACT, withContact } from "../src/live/freshness";

const ANSWER: Contact = { answered: true, clockOffset: 0, observedAt: 100_000, stale: false };
const SILENCE: Contact = { answered: false, clockOffset: null, observedAt: null, stale: null };

function contacts(...all: [Contact, number][]): ContactState {
  return all.reduce((state, [contact, at]) => withContact(state, contact, at), NO_CONTACT);
}

describe("freshnessAt", () => {
  it.each([
    ["before the first answer", NO_CONTACT, 0, { level: "live" }],
    ["a fresh answer", contacts([ANSWER, 101_000]), 105_000, { level: "live" }],
    ["an old observation", contacts([ANSWER, 101_000]), 116_000, { level: "behind", seconds: 16 }],
    [
      "a stale answer",
      contacts([{ ...ANSWER, stale: true }, 140_000]),
      140_000,
      { level: "stale", seconds: 40, reason: "" },
    ],
    ["no answer", contacts([ANSWER, 101_000], [SILENCE, 103_000]), 110_000, { level: "offline", since: 101_000 }],
    ["no answer ever", contacts([SILENCE, 103_000], [SILENCE, 104_000]), 110_000, { level: "offline", since: 103_000 }],
    ["an answer after silence", contacts([SILENCE, 100_000], [ANSWER, 101_000]), 102_000, { level: "live" }],
    [
      "a browser whose clock is an hour ahead",
      contacts([{ ...ANSWER, clockOffset: -3_600_000 }, 3_701_000]),
      3_705_000,
      { level: "live" },
    ],
  ])("%s", (_, state, now, expected) => {
    expect(freshnessAt(state, now)).toEqual(expected);
  });
});
