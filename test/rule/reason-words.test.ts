/** The sentence about the state of an event on its page. */
import { expect, test } from "bun:test";
import type { Event } from "../../web/base/answer.ts";
import { explainEvent } from "../../web/event/reason-words.ts";

const done = (...outcomes: string[]): Event =>
  ({
    state: "done",
    runs: [{ results: outcomes.map((outcome) => ({ outcome, type: "write_record", code: null, message: null })) }],
  }) as unknown as Event;

test.each([
  [done(), "The event is done."],
  [{ ...done(), runs: [] }, "The event is done."],
  [done("done", "done"), "All 2 actions are done."],
])("a done event counts only the actions that have a result", (event, text) => {
  expect(explainEvent(event, { held: false, paused: false }, 0)).toEqual({ tone: "good", text, why: null });
});
