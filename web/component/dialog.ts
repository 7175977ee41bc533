/** Question in a separate window. It uses the browser's own dialog, so that Escape, focus and the page behind work as expected. */
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { html, type View } from "../base/html.ts";
import { escapeTricky } from "./safe-text.ts";

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
  /** Prevents Escape and a click outside from closing the dialog, because its content is shown only once. */
  mustAnswer?: boolean;
}): View {
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  const isGone = useRef(false);
  // Runs in the same task in which the dialog appears or disappears, so that the focus is never lost in between.
  useLayoutEffect(() => {
    const shown = dialog.current;
    const before = document.activeElement;
    shown?.showModal();
    return () => {
      isGone.current = true;
      shown?.close();
      if (!(before instanceof HTMLElement)) return;
      // The browser returned the focus while the page was still inert, so the focused field would accept no input. Focusing it again fixes this.
      before.blur();
      before.getBoundingClientRect();
      before.focus();
    };
  }, []);
  // A browser may close the dialog without asking. A dialog that needs an answer then opens again.
  const closed = (): void => {
    if (isGone.current) return;
    if (mustAnswer) dialog.current?.showModal();
    else onClose();
  };
  return html`<dialog ref=${dialog} class=${wide ? "dialog wide" : "dialog"} aria-labelledby=${id}
    onCancel=${(event: Event) => {
      event.preventDefault();
      if (!mustAnswer) onClose();
    }}
    onClose=${closed}
    onMouseDown=${(event: MouseEvent) => {
      if (event.target === dialog.current && !mustAnswer) onClose();
    }}>
    <div class="dialog-body"><h2 id=${id}>${escapeTricky(title)}</h2>${children}</div>
  </dialog>`;
}
