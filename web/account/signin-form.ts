/** Form of the sign-in pages: fields, one button, and the service's message when it rejects the form. */

import { useState } from "preact/hooks";
import { sentenceOf } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";

export interface FormField {
  name: string;
  label: string;
  type: "email" | "password" | "text";
  autocomplete: string;
  hint?: string;
  minLength?: number;
}

export function SigninForm({
  fields,
  button,
  isSecond = false,
  onSend,
}: {
  fields: readonly FormField[];
  button: string;
  /** True if another way comes first, so that this form takes neither the focus nor the primary color. */
  isSecond?: boolean;
  onSend: (values: Record<string, string>) => Promise<void>;
}): View {
  const [error, setError] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const send = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const data = new FormData(event.target as HTMLFormElement);
    setSending(true);
    setError(null);
    try {
      await onSend(Object.fromEntries(fields.map(({ name }) => [name, String(data.get(name) ?? "")])));
    } catch (thrown) {
      setError(sentenceOf(thrown));
      setSending(false);
    }
  };
  return html`<form class="stack" onSubmit=${send}>
    ${fields.map(
      ({ name, label, type, autocomplete, hint, minLength }, at) => html`<label key=${name} class="field"
        ><span>${label}</span
        ><input name=${name} type=${type} autocomplete=${autocomplete} required minlength=${minLength} autofocus=${at === 0 && !isSecond} />${
          hint !== undefined && html`<small>${hint}</small>`
        }</label
      >`,
    )}
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <button class=${isSecond ? "whole" : "primary whole"} disabled=${isSending}>${isSending ? "One moment…" : button}</button>
  </form>`;
}
