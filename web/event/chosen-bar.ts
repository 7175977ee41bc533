/** Actions for the selected events. */
import { sayCount } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { CopyButton } from "../component/copy-button.ts";
import { Icon } from "../component/icon.ts";
import type { Selection } from "../component/selection.ts";

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
