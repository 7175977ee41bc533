/** Dialog that permanently erases a person after the owner typed the email address. */
import { useState } from "preact/hooks";
import type { PersonNow } from "../../src/interfaces/api/person.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { navigate } from "../base/route.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { notifyDone } from "../component/toast.ts";
import { useSend } from "../component/use-send.ts";

export function EraseDialog({
  place,
  now: { person, namesake },
  onClose,
}: {
  place: Place;
  now: PersonNow;
  onClose: () => void;
}): View {
  const [typed, setTyped] = useState("");
  const { send, isSending, error } = useSend();
  const erase = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const path = apiPath(place, "persons", person.id);
    if ((await send({ method: "DELETE", path })) === null) return;
    // Leaves the page first, so that it does not load the erased person.
    navigate(pagePath(place, "people"), { replace: true });
    notifyDone("Person erased.");
  };
  return html`<${Dialog} title="Erase ${person.email}?" onClose=${onClose}><form class="stack" onSubmit=${erase}>
    <p>You cannot undo this.</p>
    <ul class="erase-plan">
      <li><b>Removed:</b> their address, attributes, access, plan, tokens, customer IDs, mails and records, and their data in events and requests. This can take some minutes.</li>
      <li><b>Kept:</b> the credit ledger and receipts, under an anonymous id.</li>
      <li><b>Not affected:</b> relays get no event, and earlier backups do not change.</li>
      ${
        namesake === null
          ? html`<li>Earlier events cannot create this person again.</li>`
          : html`<li><b>Not erased: <a href=${pagePath(place, "people", namesake)}>who has the same address</a></b> in the other spelling of the domain. Erase that person too if they asked to be forgotten.</li>`
      }</ul>
    <label class="field"><span>Type the email address to confirm</span>
      <input autofocus autocomplete="off" value=${typed} onInput=${(event: InputEvent) => setTyped((event.target as HTMLInputElement).value)} />
      <small>${person.email}</small></label>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button class="danger" disabled=${isSending || typed.trim().toLowerCase() !== person.email.toLowerCase()}>
        ${isSending ? "Erasing…" : "Erase permanently"}</button></div>
  </form><//>`;
}
