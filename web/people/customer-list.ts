/** Customer ids of a person, by which an event that names only the provider's id finds the person. */
import { useState } from "preact/hooks";
import type { Page } from "../../src/base/page.ts";
import type { PersonNow } from "../../src/interfaces/api/person.ts";
import type { RelayItem } from "../../src/rules/relay/relay-view.ts";
import { call } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";

type Customer = Pick<PersonNow["customers"][number], "space" | "id">;

export function CustomerList({ place, now }: { place: Place; now: PersonNow }): View {
  const { person, customers } = now;
  const [isAdding, setAdding] = useState(false);
  const { send, isSending } = useSend();
  const path = apiPath(place, "persons", person.id, "customers");
  const changes = [apiPath(place, "persons")];
  const remove = ({ space, id }: Customer): Promise<unknown> => {
    const undo = async (): Promise<void> => {
      await call("PUT", path, { space, id });
      for (const prefix of changes) invalidate(prefix);
    };
    const words = { done: "Customer ID removed.", undo, tellsRefusal: true };
    return send({ method: "POST", path: `${path}/remove`, body: { space, id }, changes, ...words });
  };
  return html`<div class="card"><h2>Customer IDs</h2>
    ${
      customers.length === 0
        ? html`<p class="quiet">None. Events that name only the provider’s customer ID find their person by such an ID if the relay has <code>trigger.customer</code>.</p>`
        : html`<ul class="held">${customers.map(
            ({ space, id }) =>
              html`<li key=${`${space} ${id}`}><span class="wrap"><code><${SafeText} text=${id} limit=${60} /></code> <span class="quiet">of ${space}</span></span>
                <button data-needs="act_on_people" type="button" class="quiet-danger small" disabled=${isSending} aria-label="Remove the customer ID ${id} of ${space}" onClick=${() => remove({ space, id })}>Remove</button></li>`,
          )}</ul>`
    }
    <button data-needs="act_on_people" type="button" class="small" onClick=${() => setAdding(true)}>Link a customer ID…</button>
    ${isAdding && html`<${LinkDialog} place=${place} path=${path} changes=${changes} onClose=${() => setAdding(false)} />`}</div>`;
}

interface LinkProps {
  place: Place;
  path: string;
  changes: readonly string[];
  onClose: () => void;
}

function LinkDialog({ place, path, changes, onClose }: LinkProps): View {
  const { data } = useLoad<Page<RelayItem>>(`${apiPath(place, "relays")}?limit=200`);
  const { send, isSending, error } = useSend();
  const spaces = data?.items.filter(({ trigger, follows }) => trigger === "receiver" && !follows);
  const link = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.target as HTMLFormElement);
    const body = { space: String(form.get("space") ?? ""), id: String(form.get("id") ?? "").trim() };
    if ((await send({ method: "PUT", path, body, changes, done: "Customer ID linked." })) !== null) onClose();
  };
  if (spaces?.length === 0)
    return html`<${Dialog} title="Link a customer ID" onClose=${onClose}>
      <p>A customer ID belongs to the receiver of its provider, and this environment has no receiver yet. <a href=${pagePath(place, "relays", "new")}>Create one first</a>.</p>
      <div class="dialog-actions"><button type="button" onClick=${onClose}>Close</button></div><//>`;
  return html`<${Dialog} title="Link a customer ID" onClose=${onClose}><form class="stack" onSubmit=${link}>
    <label class="field"><span>Receiver of the provider</span><select name="space" required>
      ${spaces?.map(({ name }) => html`<option key=${name}>${name}</option>`)}</select></label>
    <label class="field"><span>Customer ID</span><input name="id" required autofocus autocomplete="off" />
      <small>The ID as the provider shows it, such as cus_123. An ID of another person moves to this one.</small></label>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button class="primary" disabled=${isSending || spaces === undefined}>${isSending ? "Linking…" : "Link"}</button></div>
  </form><//>`;
}
