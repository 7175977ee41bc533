/** Button that signs in at the OpenID provider. */
import { useState } from "preact/hooks";
import { sentenceOf } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { goToProvider } from "./provider-signin.ts";

export function ProviderButton({ name, returnTo }: { name: string; returnTo?: string }): View {
  const [error, setError] = useState<string | null>(null);
  const [isGoing, setGoing] = useState(false);
  const go = (): void => {
    setGoing(true);
    setError(null);
    goToProvider(returnTo).catch((thrown) => {
      setError(sentenceOf(thrown));
      setGoing(false);
    });
  };
  return html`<button type="button" class="primary whole" disabled=${isGoing} onClick=${go}>${isGoing ? "One moment…" : `Sign in with ${name}`}</button>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}`;
}
