/** Short notices of outcomes, which screen readers announce. A notice reports what the service answered, never an expectation. */
import { sentenceOf } from "../base/api.ts";
import { makeCell, useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import { Icon } from "./icon.ts";
import { Sentence } from "./sentence.ts";

interface Toast {
  id: number;
  kind: "done" | "failed";
  text: string;
  /** Reverts the action; absent if that is not possible. */
  undo?: (() => Promise<unknown>) | undefined;
  link?: ToastLink | undefined;
}

interface ToastLink {
  to: string;
  words: string;
}

const SHOWN_MS = 6_000;
const toasts = makeCell<readonly Toast[]>([]);
let last = 0;

/** Reports a success. `undo` reverts the action and adds a button for it. */
export function notifyDone(text: string, undo?: () => Promise<unknown>, link?: ToastLink): void {
  notify("done", text, undo, link);
}

export function notifyFailed(text: string): void {
  notify("failed", text);
}

function notify(kind: Toast["kind"], text: string, undo?: Toast["undo"], link?: ToastLink): void {
  last += 1;
  const id = last;
  toasts.set([...toasts.get().slice(-2), { id, kind, text, undo, link }]);
  if (kind === "done") setTimeout(() => dismiss(id), SHOWN_MS);
}

async function takeBack(id: number, undo: () => Promise<unknown>): Promise<void> {
  dismiss(id);
  try {
    await undo();
  } catch (thrown) {
    notifyFailed(sentenceOf(thrown));
  }
}

function dismiss(id: number): void {
  toasts.set(toasts.get().filter((toast) => toast.id !== id));
}

export function Toasts(): View {
  const shown = useCell(toasts);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${shown.map(
      ({ id, kind, text, undo, link }) => html`<div key=${id} class="toast toast-${kind}">
        <${Icon} name=${kind === "done" ? "check" : "attention"} />
        <span><${Sentence} text=${text} /></span>
        ${link !== undefined && html`<a href=${link.to} onClick=${() => dismiss(id)}>${link.words}</a>`}
        ${undo !== undefined && html`<button type="button" class="link" onClick=${() => takeBack(id, undo)}>Undo</button>`}
        <button type="button" class="bare" aria-label="Dismiss" onClick=${() => dismiss(id)}>
          <${Icon} name="cross" size=${14} /></button>
      </div>`,
    )}
  </div>`;
}
