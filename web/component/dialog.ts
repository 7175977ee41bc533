/** A question in a window of its own: the browser's own dialog, so that Escape, focus and the page behind are as people expect. */
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
  /** Neither Escape nor a click outside closes it: what it shows is shown once. */
  mustAnswer?: boolean;
}): View {
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  const isGone = useRef(false);
  // In the same turn as it appears and goes, so that the focus is never lost between.
  useLayoutEffect(() => {
    const shown = dialog.current;
    const before = document.activeElement;
    shown?.showModal();
    return () => {
      isGone.current = true;
      shown?.close();
      if (!(before instanceof HTMLElement)) return;
      // The browser has given the focus back while the page was still inert, and a field would take no letter.
      before.blur();
      before.getBoundingClientRect();
      before.focus();
    };
  }, []);
  // A browser may close it without asking; what must be answered then opens again.
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
