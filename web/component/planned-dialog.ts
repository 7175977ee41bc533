/** Dialog of a change that shows its plan first: the user names the target, reads the plan, and then makes the change. */
import { useState } from "preact/hooks";
import { html, type View } from "../base/html.ts";
import { Dialog } from "./dialog.ts";
import { Notice } from "./notice.ts";
import { Sentence } from "./sentence.ts";
import { useSend } from "./use-send.ts";

interface Planned {
  plan: { message: string };
}

interface PlannedDialogProps {
  title: string;
  /** The route, which takes `plan`. */
  path: string;
  /** The field of the body that names the target, and its label. */
  field: string;
  label: string;
  given?: string;
  /** The label of the button that makes the change. */
  act: string;
  done: string;
  changes: readonly string[];
  onClose: () => void;
}

export function PlannedDialog({ given = "", ...props }: PlannedDialogProps): View {
  const { title, path, field, label, act, done, changes, onClose } = props;
  const [target, setTarget] = useState(given);
  const [plan, setPlan] = useState<{ target: string; message: string } | null>(null);
  const { send, isSending, error, clear } = useSend();
  const body = { [field]: target.trim() };
  // The plan of another target must not be applied to this one.
  const current = plan?.target === target ? plan : null;
  const change = (event: InputEvent): void => {
    setTarget((event.target as HTMLInputElement).value);
    clear();
  };
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (current !== null) {
      if ((await send({ method: "POST", path, body, changes, done })) !== null) onClose();
      return;
    }
    const planned = await send<Planned>({ method: "POST", path, body: { ...body, plan: true } });
    if (planned !== null) setPlan({ target, message: planned.answer.plan.message });
  };
  const verb = current === null ? "Show the plan" : act;
  return html`<${Dialog} title=${title} onClose=${onClose}><form class="stack" onSubmit=${submit}>
    <label class="field"><span>${label}</span>
      <input autofocus required autocomplete="off" value=${target} disabled=${isSending} onInput=${change} /></label>
    ${current !== null && html`<p role="status"><${Sentence} text=${current.message} /></p>`}
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button class="primary" disabled=${isSending || target.trim() === ""}>${isSending ? "One moment…" : verb}</button></div>
  </form><//>`;
}
