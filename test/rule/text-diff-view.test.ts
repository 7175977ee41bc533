/** What is shown of two definitions beside each other cannot deceive: what would turn or hide text stands as its escape. */
import { expect, test } from "bun:test";
import { DiffRows } from "../../web/relay/text-diff-view.ts";

/** The text of a view, its parts in order. */
function textOf(view: unknown): string {
  if (typeof view === "string") return view;
  if (Array.isArray(view)) return view.map(textOf).join("");
  if (typeof view !== "object" || view === null || !("props" in view)) return "";
  return textOf((view.props as { children?: unknown }).children);
}

for (const [what, hidden, shownAs] of [
  ["a turn of direction", "\u202e", "\\u202e"],
  ["an isolate", "\u2066", "\\u2066"],
  ["nothing to be seen", "\u200b", "\\u200b"],
  ["a letter that is blank", "\u3164", "\\u3164"],
  ["a pattern of no dots", "\u2800", "\\u2800"],
] as const) {
  test(`${what} in a definition`, () => {
    const shown = textOf(DiffRows({ left: '"reason": "a"', right: `"reason": "a${hidden}b"` }));
    expect(shown).toContain(`a${shownAs}b`);
    expect(shown).not.toContain(hidden);
  });
}

const PILE = "\u0301\u0302\u0303\u0304\u0305";
for (const [what, marks, shownAs] of [
  ["as many marks upon one letter as a script has stay", PILE, PILE],
  ["marks piled over the lines above stand as their escapes", PILE + PILE.slice(0, 2), `${PILE}\\u0301\\u0302`],
  ["and so do those below and around it", `${PILE}\u0316\u20dd`, `${PILE}\\u0316\\u20dd`],
] as const) {
  test(what, () => {
    const shown = textOf(DiffRows({ left: "a", right: `a${marks}b` }));
    expect(shown).toContain(`a${shownAs}b`);
  });
}
