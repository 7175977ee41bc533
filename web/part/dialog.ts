/** A question in a window of its own: the browser's own dialog, so that Escape, focus and the page behind are as people expect. */
import { useEffect, useId, useRef } from "preact/hooks";
import { html, type View } from "../ground/html.ts";

export function Dialog({
  title,
  onClose,
  children,
  wide = false,
  mustAnswer = false,
}: {
  title: string;
  onClose: () => void;
  children?: View;
  wide?: boolean;
  /** Neither Escape nor a click outside closes it: what it shows is shown once. */
  mustAnswer?: boolean;
}): View {
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = dialog.current;
    const before = document.activeElement;
    shown?.showModal();
    return () => {
      shown?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return html`<dialog ref=${dialog} class=${wide ? "dialog wide" : "dialog"} aria-labelledby=${id}
    onCancel=${(event: Event) => {
      event.preventDefault();
      if (!mustAnswer) onClose();
    }}
    onMouseDown=${(event: MouseEvent) => {
      if (event.target === dialog.current && !mustAnswer) onClose();
    }}>
    <div class="dialog-body"><h2 id=${id}>${title}</h2>${children}</div>
  </dialog>`;
}
