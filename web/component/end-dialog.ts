/** Dialog that confirms and performs an irreversible deletion or end. */
import { html, type View } from "../base/html.ts";
import { Dialog } from "./dialog.ts";
import { Notice } from "./notice.ts";
import { Sentence } from "./sentence.ts";
import { useSend } from "./use-send.ts";

export function EndDialog({
  title,
  words,
  act,
  done,
  method,
  path,
  changes,
  onClose,
  onDone = onClose,
}: {
  title: string;
  /** Consequences of the action. */
  words: View;
  /** Label of the button. */
  act: string;
  done: string;
  method: "DELETE" | "POST";
  path: string;
  changes: readonly string[];
  onClose: () => void;
  onDone?: () => void;
}): View {
  const { send, isSending, error } = useSend();
  const end = async (): Promise<void> => {
    if ((await send({ method, path, changes, done })) !== null) onDone();
  };
  return html`<${Dialog} title=${title} onClose=${onClose}><p>${words}</p>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" autofocus onClick=${onClose}>Cancel</button>
      <button type="button" class="danger" disabled=${isSending} onClick=${end}>${isSending ? "One moment…" : act}</button></div><//>`;
}
