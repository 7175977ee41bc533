/** A save met a newer version: both are shown, and the person decides. Nothing is saved until then. */
import type { Relay } from "../ground/answer.ts";
import { sayCount } from "../ground/count-words.ts";
import { html, type View } from "../ground/html.ts";
import { Dialog } from "../part/dialog.ts";
import { Ago } from "../part/time.ts";
import { diffLines, shortenDiff } from "./text-diff.ts";

const SIGN = { same: " ", left: "−", right: "+" } as const;

export function RelayConflict({
  mine,
  theirs,
  theirText,
  onMine,
  onTheirs,
  onClose,
}: {
  mine: string;
  theirs: Relay;
  theirText: string;
  onMine: () => void;
  onTheirs: () => void;
  onClose: () => void;
}): View {
  return html`<${Dialog} title="The relay changed while you edited it" onClose=${onClose} wide>
    <p>Version ${theirs.version} was ${theirs.origin.kind === "file" ? "synced from a file" : "saved in the dashboard"} <${Ago} at=${theirs.origin.at} />. Nothing of yours was saved.</p>
    <div class="diff" role="group" aria-label="Differences: minus is the stored version, plus is yours" tabindex="0">
      ${shortenDiff(diffLines(theirText, mine)).map((line, at) =>
        line.kind === "gap"
          ? html`<div key=${at} class="diff-gap">${sayCount(line.lines, "line")} that both have</div>`
          : html`<div key=${at} class="diff-${line.kind}"><span aria-hidden="true">${SIGN[line.kind]}</span>${line.text}</div>`,
      )}
    </div>
    <p class="quiet">
      <span class="diff-key diff-left">−</span> only in version ${theirs.version} <span class="diff-key diff-right">+</span> only in yours</p>
    <div class="dialog-actions">
      <button type="button" onClick=${onClose}>Go on editing mine</button>
      <button type="button" onClick=${onTheirs}>Take version ${theirs.version}, drop mine</button>
      <button type="button" class="primary" onClick=${onMine}>Save mine over it</button>
    </div>
  <//>`;
}
