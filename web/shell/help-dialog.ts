/** List of the keyboard shortcuts. */
import { useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import { Dialog } from "../component/dialog.ts";
import { DOCS } from "../component/docs-link.ts";
import { FIND_KEYS, helpShown } from "../component/keyboard.ts";
import { SECTIONS } from "./navigation-pages.ts";

const KEYS: readonly [keys: readonly string[], does: string][] = [
  [["/"], "search this page"],
  [["j", "↓"], "next row"],
  [["k", "↑"], "previous row"],
  [["Enter"], "open the row"],
  [["Esc"], "back, or close"],
  [["x", "X"], "select the event, or all events up to it"],
  [["r"], "replay the event or the selected events"],
  [["n", "p"], "next or previous event of the filter"],
  [["↓", "↑", "y"], "in a payload: move, copy the path"],
  [["Ctrl", "S"], "save the definition"],
  [FIND_KEYS, "find anything"],
  ...SECTIONS.map(({ letter, title }): [string[], string] => [["g", letter], title]),
];

export function HelpDialog(): View {
  if (!useCell(helpShown)) return null;
  const close = (): void => helpShown.set(false);
  return html`<${Dialog} title="Keyboard shortcuts" onClose=${close}>
    <dl class="keys">${KEYS.map(
      ([keys, does]) =>
        html`<div key=${does}><dt>${keys.map((key) => html`<kbd key=${key}>${key}</kbd>`)}</dt><dd>${does}</dd></div>`,
    )}</dl>
    <div class="dialog-actions"><a class="button" href=${DOCS.all} target="_blank" rel="noreferrer">Documentation</a><button type="button" onClick=${close}>Close</button></div>
  <//>`;
}
