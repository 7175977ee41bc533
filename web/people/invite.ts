/** Dialog that adds a person by email address without sending mail. It then opens the new or existing person. */
import { useState } from "preact/hooks";
import type { PersonView } from "../../src/shop/people/person.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { navigate } from "../base/route.ts";
import { Dialog } from "../component/dialog.ts";
import { Icon } from "../component/icon.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";

export function InviteButton({
  place,
  email = "",
  isPrimary = false,
}: {
  place: Place;
  email?: string;
  isPrimary?: boolean;
}): View {
  const [isOpen, setOpen] = useState(false);
  return html`<button data-needs="act_on_people" type="button" class=${isPrimary ? "primary" : ""} onClick=${() => setOpen(true)}>
      <${Icon} name="plus" size=${14} />Add a person…</button>
    ${isOpen && html`<${InviteDialog} place=${place} email=${email} onClose=${() => setOpen(false)} />`}`;
}

function InviteDialog({ place, email, onClose }: { place: Place; email: string; onClose: () => void }): View {
  const { send, isSending, error } = useSend();
  const invite = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const data = new FormData(event.target as HTMLFormElement);
    const path = apiPath(place, "persons");
    const sent = await send<{ person: PersonView; created: boolean }>({
      method: "POST",
      path,
      body: { email: String(data.get("email") ?? "") },
      changes: [path],
      done: ({ person, created }) =>
        created ? `${person.email} is added.` : `${person.email} already exists.`,
    });
    if (sent === null) return;
    onClose();
    navigate(pagePath(place, "people", sent.answer.person.id));
  };
  return html`<${Dialog} title="Add a person" onClose=${onClose}><form class="stack" onSubmit=${invite}>
    <label class="field"><span>E-mail address</span>
      <input name="email" type="email" required autofocus autocomplete="off" defaultValue=${email} />
      <small>Relay sends no mail. The person can get access and credits at once, and can sign in to your app.</small></label>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button class="primary" disabled=${isSending}>${isSending ? "Adding…" : "Add"}</button></div>
  </form><//>`;
}
