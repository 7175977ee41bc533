/** Store account tokens of a person, by which a purchase in an app store finds the person. */
import { useState } from "preact/hooks";
import type { PersonNow } from "../../src/interfaces/api/person.ts";
import { call } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import { apiPath, type Place } from "../base/place.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";

export function TokenList({ place, now }: { place: Place; now: PersonNow }): View {
  const { person, tokens } = now;
  const [isAdding, setAdding] = useState(false);
  const { send, isSending } = useSend();
  const path = apiPath(place, "persons", person.id, "tokens");
  const changes = [apiPath(place, "persons")];
  const remove = (token: string): Promise<unknown> => {
    const undo = async (): Promise<void> => {
      await call("PUT", path, { token });
      for (const prefix of changes) invalidate(prefix);
    };
    const words = { done: "Token removed.", undo, tellsRefusal: true };
    return send({ method: "POST", path: `${path}/remove`, body: { token }, changes, ...words });
  };
  return html`<div class="card"><h2>Store account tokens</h2>
    ${
      tokens.length === 0
        ? html`<p class="quiet">None. Events of an app store find their person by such a token if the map has <code>person_token</code>.</p>`
        : html`<ul class="held">${tokens.map(
            ({
              token,
            }) => html`<li key=${token}><code class="wrap"><${SafeText} text=${token} limit=${60} /></code>
              <button data-needs="act_on_people" type="button" class="quiet-danger small" disabled=${isSending} aria-label="Remove the token ${token}" onClick=${() => remove(token)}>Remove</button></li>`,
          )}</ul>`
    }
    <button data-needs="act_on_people" type="button" class="small" onClick=${() => setAdding(true)}>Add a token…</button>
    ${isAdding && html`<${FileDialog} path=${path} changes=${changes} onClose=${() => setAdding(false)} />`}</div>`;
}

function FileDialog({
  path,
  changes,
  onClose,
}: {
  path: string;
  changes: readonly string[];
  onClose: () => void;
}): View {
  const { send, isSending, error } = useSend();
  const file = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const token = String(new FormData(event.target as HTMLFormElement).get("token") ?? "");
    if ((await send({ method: "PUT", path, body: { token }, changes, done: "Token added." })) !== null)
      onClose();
  };
  return html`<${Dialog} title="Add a store account token" onClose=${onClose}><form class="stack" onSubmit=${file}>
    <label class="field"><span>Token</span><input name="token" required autofocus autocomplete="off" />
      <small>The token that the store sends with a purchase. It belongs to one person.</small></label>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button class="primary" disabled=${isSending}>${isSending ? "Adding…" : "Add"}</button></div>
  </form><//>`;
}
