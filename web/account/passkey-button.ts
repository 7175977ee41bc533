/** Button that asks the browser for a passkey and sends the result, with the sentence of a failure. */
import { useState } from "preact/hooks";
import { sentenceOf } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";

export function PasskeyButton({
  label,
  isMain = false,
  onUse,
}: {
  label: string;
  /** True: the button is the usual way on. */
  isMain?: boolean;
  /** Rejects with the error that the button shows. */
  onUse: () => Promise<void>;
}): View {
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const use = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      await onUse();
    } catch (thrown) {
      setError(sentenceOf(thrown));
    }
    setBusy(false);
  };
  return html`${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <button type="button" class=${isMain ? "primary whole" : "whole"} disabled=${isBusy} onClick=${() => void use()}>${isBusy ? "One moment…" : label}</button>`;
}
