/**
 * View of a diff, line by line with a few equal lines around each change. It highlights the changed part of a line and
 * scrolls to the first one. Deceptive characters appear as escapes.
 */
import { useLayoutEffect, useRef } from "preact/hooks";
import { formatCount } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { revealText } from "../component/safe-text.ts";
import type { LinePart } from "./line-diff.ts";
import { diffLines, shortenDiff } from "./text-diff.ts";

const SIGN = { same: " ", left: "−", right: "+" } as const;
const WORD = { same: "", left: "removed: ", right: "added: " } as const;

export function TextDiff({ left, right, label }: { left: string; right: string; label: string }): View {
  return html`<${DiffBox} label=${label}><${DiffRows} left=${left} right=${right} /><//>`;
}

/** Box around the rows of one or more differences. */
export function DiffBox({ label, children }: { label: string; children: View }): View {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const mark = box.current?.querySelector<HTMLElement>(".diff-mark");
    if (box.current === null || mark == null) return;
    // Scrolls only the box, so that the page does not move.
    const below = mark.getBoundingClientRect().bottom - box.current.getBoundingClientRect().bottom;
    if (below > 0) box.current.scrollTop += below + box.current.clientHeight / 2;
  }, []);
  return html`<div ref=${box} class="diff" role="group" aria-label=${label} tabindex="0">${children}</div>`;
}

/** Shows the rows of a diff. "" is a missing side. `gap` describes the lines that are not replayed. */
export function DiffRows({
  left,
  right,
  gap = "equal in both",
}: {
  left: string;
  right: string;
  gap?: string;
}): View {
  const lines = diffLines(left, right).filter(({ text }) => text !== "");
  return html`${shortenDiff(lines).map((line, at) =>
    line.kind === "gap"
      ? html`<div key=${at} class="diff-gap">${formatCount(line.lines, "line")} ${gap}</div>`
      : html`<div key=${at} class="diff-${line.kind}"><span class="diff-sign" aria-hidden="true">${SIGN[line.kind]}</span><span class="off-screen">${WORD[line.kind]}</span>${
          line.parts === undefined
            ? revealText(line.text)
            : showParts(line.text, line.parts, line.looksSame === true)
        }</div>`,
  )}`;
}

function showParts(text: string, parts: readonly LinePart[], isExact: boolean): View[] {
  return parts.flatMap((part, at): View[] => {
    if (part.kind === "skipped")
      return [
        html`<span key=${at} class="diff-skipped">… ${formatCount(part.characters, "character")} unchanged …</span>`,
      ];
    const shown = revealText(text, { from: part.at, to: part.at + part.text.length, isExact });
    return part.kind === "changed" ? [html`<mark key=${at} class="diff-mark">${shown}</mark>`] : shown;
  });
}
