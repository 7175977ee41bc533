/** The comparison of two definitions cannot deceive: characters that reorder or hide text appear as escapes. */
import { expect, test } from "bun:test";
import { DiffRows } from "../../web/relay/text-diff-view.ts";

/** Joins the text of a view, its parts in order. */
function textOf(view: unknown): string {
  if (typeof view === "string") return view;
  if (Array.isArray(view)) return view.map(textOf).join("");
  if (typeof view !== "object" || view === null || !("props" in view)) return "";
  return textOf((view.props as { children?: unknown }).children);
}

for (const [what, hidden, shownAs] of [
  ["a right-to-left override", "\u202e", "\\u202e"],
  ["an isolate", "\u2066", "\\u2066"],
  ["a zero-width space", "\u200b", "\\u200b"],
  ["a blank letter", "\u3164", "\\u3164"],
  ["a blank Braille pattern", "\u2800", "\\u2800"],
] as const) {
  test(`${what} in a definition`, () => {
    const shown = textOf(DiffRows({ left: '"reason": "a"', right: `"reason": "a${hidden}b"` }));
    expect(shown).toContain(`a${shownAs}b`);
    expect(shown).not.toContain(hidden);
  });
}

const PILE = "\u0301\u0302\u0303\u0304\u0305";
for (const [what, marks, shownAs] of [
  ["one letter keeps as many combining marks as real scripts use", PILE, PILE],
  ["further marks above a letter appear as escapes", PILE + PILE.slice(0, 2), `${PILE}\\u0301\\u0302`],
  ["marks below and around it appear as escapes too", `${PILE}\u0316\u20dd`, `${PILE}\\u0316\\u20dd`],
] as const) {
  test(what, () => {
    const shown = textOf(DiffRows({ left: "a", right: `a${marks}b` }));
    expect(shown).toContain(`a${shownAs}b`);
  });
}
