/**
 * Nothing is silent: staged failures, and where each is told to an owner who asked for nothing. A row is one failure; its score is found, not
 * claimed, and the sum is asserted.
 */
import { describe, expect, test } from "bun:test";
import { STAGED_CALLS } from "../kit/staged-call.ts";
import { STAGED_EVENTS } from "../kit/staged-event.ts";
import { Stand, scoreOf } from "../kit/staged-failure.ts";
import { STAGED_SAVES } from "../kit/staged-save.ts";

const ROWS = [...STAGED_CALLS, ...STAGED_EVENTS, ...STAGED_SAVES];
const scores = new Map<string, number>();

describe("a server tells by itself, with the cause", () => {
  test.each(ROWS.map((row) => [row.name, row] as const))("%s", async (name, row) => {
    await using stand = await Stand.start(row.options);
    await row.stage(stand);
    const { score, places, told } = await scoreOf(row, stand);
    scores.set(name, score);
    if (row.hidden !== undefined) expect(told).not.toContain(row.hidden);
    if (score < (row.score ?? 3))
      throw new Error(`${name}: ${score} of ${row.score ?? 3}, told with its cause in [${places.join(", ")}], not in all of [${row.where.join(", ")}]
${told}`);
  });

  test("of 39 staged failures, at least 105 of 117", () => {
    expect(scores.size).toBe(39);
    expect([...scores.values()].reduce((sum, score) => sum + score, 0)).toBeGreaterThanOrEqual(105);
  });
});
