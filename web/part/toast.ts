/** Short notices of outcomes, read out by screen readers. They tell what the service answered, never what is hoped for. */
import { makeCell, useCell } from "../ground/cell.ts";
import { html, type View } from "../ground/html.ts";
import { Icon } from "./icon.ts";

interface Toast {
  id: number;
  kind: "done" | "failed";
  text: string;
}

const SHOWN_MS = 6_000;
const toasts = makeCell<readonly Toast[]>([]);
let last = 0;

export function tellDone(text: string): void {
  tell("done", text);
}

export function tellFailed(text: string): void {
  tell("failed", text);
}

function tell(kind: Toast["kind"], text: string): void {
  last += 1;
  const id = last;
  toasts.set([...toasts.get().slice(-2), { id, kind, text }]);
  if (kind === "done") setTimeout(() => dismiss(id), SHOWN_MS);
}

function dismiss(id: number): void {
  toasts.set(toasts.get().filter((toast) => toast.id !== id));
}

export function Toasts(): View {
  const shown = useCell(toasts);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${shown.map(
      ({ id, kind, text }) => html`<div key=${id} class="toast toast-${kind}">
        <${Icon} name=${kind === "done" ? "check" : "attention"} />
        <span>${text}</span>
        <button type="button" class="bare" aria-label="Dismiss" onClick=${() => dismiss(id)}>
          <${Icon} name="cross" size=${14} /></button>
      </div>`,
    )}
  </div>`;
}
