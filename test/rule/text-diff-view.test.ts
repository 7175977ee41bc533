/** What is shown of two definitions beside each other cannot deceive: what would turn or hide text stands as its escape. */
import { expect, test } from "bun:test";
import { TextDiff } from "../../web/relay/text-diff-view.ts";

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
] as const) {
  test(`${what} in a definition`, () => {
    const shown = textOf(TextDiff({ left: '"reason": "a"', right: `"reason": "a${hidden}b"`, label: "Differences" }));
    expect(shown).toContain(`a${shownAs}b`);
    expect(shown).not.toContain(hidden);
  });
}
