/** Wrapping of sentences in a terminal: a command in a sentence can be copied unchanged. */
import { describe, expect, test } from "bun:test";
import { PROBLEMS } from "../../src/base/code/problem-code.ts";
import { wrapTo } from "../../src/interfaces/cli/terminal/table.ts";

const rows: [text: string, columns: number, lines: string[]][] = [
  ["Resume it with relay relays resume, or see them.", 30, ["Resume it with", "relay relays resume, or see", "them."]],
  [
    "See relay events list --relay night-job --state dead for all of them.",
    50,
    ["See", "relay events list --relay night-job --state dead", "for all of them."],
  ],
  ["Release it: relay settings set held off, or wait.", 34, ["Release it:", "relay settings set held off, or", "wait."]],
  ["Make one with relay serve --backup-every 1d now.", 36, ["Make one with", "relay serve --backup-every 1d now."]],
  ["Run relay relays set-secret for it again.", 27, ["Run relay relays set-secret", "for it again."]],
  ["Or reset it with relay admin reset.", 20, ["Or reset it with", "relay admin reset."]],
  ["There relay move --undo lets one start.", 24, ["There relay move --undo", "lets one start."]],
  ["See it with relay import-missed orders --dry-run first.", 40, ["See it with", "relay import-missed orders --dry-run", "first."]],
  ["Copy it by relay backup /mnt/backup/relay.db now.", 34, ["Copy it by", "relay backup /mnt/backup/relay.db", "now."]],
  ["The relay of this name waits for its retry.", 20, ["The relay of this", "name waits for its", "retry."]],
  [
    "See relay events list --relay a-very-long-name-that-has-no-room.",
    24,
    ["See relay events list", "--relay a-very-long-name", "-that-has-no-room."],
  ],
];

describe("a sentence in lines", () => {
  test.each(rows)("%s at %i", (text, columns, lines) => {
    expect(wrapTo(text, columns).split("\n")).toEqual(lines);
  });

  test("loses no letter, and no line of any alert is wider than the terminal", () => {
    for (const { what, todo } of Object.values(PROBLEMS))
      for (const text of [what, todo])
        for (const columns of [30, 40, 80]) {
          const lines = wrapTo(text, columns).split("\n");
          expect(lines.join("").replaceAll(" ", "")).toBe(text.replaceAll(" ", ""));
          expect(Math.max(...lines.map((line) => Bun.stringWidth(line)))).toBeLessThanOrEqual(columns);
        }
  });
});
