/** What can be done with the events that are chosen. */
import { sayCount } from "../ground/count-words.ts";
import { html, type View } from "../ground/html.ts";
import { CopyButton } from "../part/copy-button.ts";
import { Icon } from "../part/icon.ts";
import type { Selection } from "../part/selection.ts";

export function ChosenBar({ selection, onReplay }: { selection: Selection; onReplay: () => void }): View {
  const { chosen } = selection;
  if (chosen.size === 0) return null;
  return html`<div class="chosen-bar" role="region" aria-label="Selected events">
    <b role="status">${sayCount(chosen.size, "event")} selected</b>
    <button type="button" class="primary" onClick=${onReplay}><${Icon} name="replay" size=${14} />Replay ${chosen.size === 1 ? "it" : "them"}…</button>
    <${CopyButton} text=${[...chosen].join("\n")} label="Copy ids" words="Copy ids" />
    <button type="button" onClick=${() => selection.set([])}>Clear</button>
  </div>`;
}
