/** Short notices of outcomes, read out by screen readers. They tell what the service answered, never what is hoped for. */
import { sentenceOf } from "../base/api.ts";
import { makeCell, useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import { Icon } from "./icon.ts";
import { Sentence } from "./sentence.ts";

interface Toast {
  id: number;
  kind: "done" | "failed";
  text: string;
  /** Takes back what was done; absent where that cannot be. */
  undo?: (() => Promise<unknown>) | undefined;
}

const SHOWN_MS = 6_000;
const toasts = makeCell<readonly Toast[]>([]);
let last = 0;

/** `undo` takes back what was done, with a button beside the words. */
export function tellDone(text: string, undo?: () => Promise<unknown>): void {
  tell("done", text, undo);
}

export function tellFailed(text: string): void {
  tell("failed", text);
}

function tell(kind: Toast["kind"], text: string, undo?: Toast["undo"]): void {
  last += 1;
  const id = last;
  toasts.set([...toasts.get().slice(-2), { id, kind, text, undo }]);
  if (kind === "done") setTimeout(() => dismiss(id), SHOWN_MS);
}

async function takeBack(id: number, undo: () => Promise<unknown>): Promise<void> {
  dismiss(id);
  try {
    await undo();
  } catch (thrown) {
    tellFailed(sentenceOf(thrown));
  }
}

function dismiss(id: number): void {
  toasts.set(toasts.get().filter((toast) => toast.id !== id));
}

export function Toasts(): View {
  const shown = useCell(toasts);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${shown.map(
      ({ id, kind, text, undo }) => html`<div key=${id} class="toast toast-${kind}">
        <${Icon} name=${kind === "done" ? "check" : "attention"} />
        <span><${Sentence} text=${text} /></span>
        ${undo !== undefined && html`<button type="button" class="link" onClick=${() => takeBack(id, undo)}>Undo</button>`}
        <button type="button" class="bare" aria-label="Dismiss" onClick=${() => dismiss(id)}>
          <${Icon} name="cross" size=${14} /></button>
      </div>`,
    )}
  </div>`;
}
