/** What differs between two texts, line by line, with a few equal lines around it; what would turn or hide text stands as its escape. */
import { sayCount } from "../ground/count-words.ts";
import { html, type View } from "../ground/html.ts";
import { escapeTricky } from "../part/safe-text.ts";
import { diffLines, shortenDiff } from "./text-diff.ts";

const SIGN = { same: " ", left: "−", right: "+" } as const;
const WORD = { same: "", left: "taken away: ", right: "added: " } as const;

export function TextDiff({ left, right, label }: { left: string; right: string; label: string }): View {
  return html`<div class="diff" role="group" aria-label=${label} tabindex="0">
    ${shortenDiff(diffLines(left, right)).map((line, at) =>
      line.kind === "gap"
        ? html`<div key=${at} class="diff-gap">${sayCount(line.lines, "line")} that both have</div>`
        : html`<div key=${at} class="diff-${line.kind}"><span aria-hidden="true">${SIGN[line.kind]}</span><span class="off-screen">${WORD[line.kind]}</span>${escapeTricky(line.text)}</div>`,
    )}
  </div>`;
}
