/** Menu of a value in the payload: where the definition can use it. The arrow keys move, Escape closes. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { copyText } from "../base/clipboard.ts";
import { html, type View } from "../base/html.ts";
import { Dialog } from "../component/dialog.ts";
import { Icon } from "../component/icon.ts";
import { escapeTricky, SafeText } from "../component/safe-text.ts";
import { notifyDone, notifyFailed } from "../component/toast.ts";
import type { InsertTarget } from "./insert-target.ts";
import { isMapName, type PayloadUses } from "./payload-use.ts";

interface Item {
  label: string;
  /** undefined: the item is an action and not a choice. */
  isOn?: boolean;
  run(): void;
}

export function PayloadMenu({
  uses,
  text,
  onText,
  target,
  onClose,
}: {
  uses: PayloadUses;
  text: string;
  onText: (next: string) => void;
  /** The field of the form that was focused last; null: none. */
  target: InsertTarget | null;
  /** Closes the menu. True: the user moved the focus elsewhere. */
  onClose: (isLeft?: boolean) => void;
}): View {
  const { path, caution, obstacle } = uses;
  const [isNaming, setNaming] = useState(false);
  const menu = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => menu.current?.querySelector<HTMLElement>("[role^=menuitem]")?.focus(), []);
  const take = (next: string): void => {
    onText(next);
    onClose();
  };
  const items: Item[] = [];
  const inserted = target === null ? null : target.kind === "path" ? path : uses.template;
  if (target !== null && inserted !== null && obstacle === null) {
    const run = (): void => {
      onClose(true);
      target.insert(target.kind === "path" ? inserted : `{{${inserted}}}`);
    };
    items.push({ label: `Insert into ${target.label}`, run });
  }
  for (const { label, isOn, edit } of uses.uses) items.push({ label, isOn, run: () => take(edit(text)) });
  if (uses.nameAs !== null) items.push({ label: "Use under a name…", run: () => setNaming(true) });
  items.push({ label: "Copy the path", run: () => void copy(path).then(() => onClose()) });
  const press = (event: KeyboardEvent): void => {
    event.stopPropagation();
    const all = [...(menu.current?.querySelectorAll<HTMLElement>("[role^=menuitem]") ?? [])];
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + all.length, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      all[to % all.length]?.focus();
    } else if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      onClose();
    }
  };
  const leave = (event: FocusEvent): void => {
    const to = event.relatedTarget;
    if (
      !isNaming &&
      to instanceof Element &&
      menu.current?.contains(to) !== true &&
      to.closest("dialog") === null
    )
      onClose(true);
  };
  return html`<div class="payload-menu" onFocusOut=${leave}>
    <p class="payload-menu-path"><code><${SafeText} text=${path === "" ? "body" : path} limit=${300} breaks /></code></p>
    ${obstacle !== null && html`<p class="quiet">${obstacle}</p>`}
    ${caution !== null && html`<p class="payload-caution">${caution}</p>`}
    <div ref=${menu} role="menu" aria-label="Uses of ${path}" onKeyDown=${press}>${items.map(
      ({ label, isOn, run }) =>
        html`<button key=${label} type="button" role=${isOn === undefined ? "menuitem" : "menuitemcheckbox"} aria-checked=${isOn === undefined ? undefined : String(isOn)}
          tabindex="-1" class="payload-use" onClick=${run}><span class="payload-check" aria-hidden="true">${isOn === true && html`<${Icon} name="check" size=${12} />`}</span><span>${escapeTricky(label)}</span></button>`,
    )}</div>
    ${isNaming && html`<${NameDialog} uses=${uses} onClose=${() => onClose()} onName=${(name: string) => uses.nameAs !== null && take(uses.nameAs(text, name))} />`}
  </div>`;
}

async function copy(path: string): Promise<void> {
  if (await copyText(path)) notifyDone("Copied the path.");
  else notifyFailed("The browser did not allow the copy. Select the path and press Ctrl+C.");
}

function NameDialog({
  uses: { path, suggestion },
  onName,
  onClose,
}: {
  uses: PayloadUses;
  onName: (name: string) => void;
  onClose: () => void;
}): View {
  const [name, setName] = useState(suggestion);
  const isName = isMapName(name);
  const keep = (event: Event): void => {
    event.preventDefault();
    if (isName) onName(name);
  };
  return html`<${Dialog} title="Use a value under a name" onClose=${onClose}>
    <p>Templates read <code><${SafeText} text=${path} limit=${300} breaks /></code> as <code>{{mapped.${name}}}</code>.</p>
    <form class="stack" onSubmit=${keep}>
      <label class="field"><span>Name</span><input class="mono" value=${name} maxlength="63" autofocus spellcheck=${false} autocomplete="off"
        aria-invalid=${!isName} onInput=${(event: InputEvent) => setName((event.target as HTMLInputElement).value)} />
        <small>Letters, digits, hyphens and underscores. The first one is a letter or an underscore.</small></label>
      <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
        <button class="primary" disabled=${!isName}>Use the name</button></div>
    </form><//>`;
}
