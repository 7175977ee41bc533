/** Facts about a person: id, origin, whether they receive mail, customer ids, store account tokens and attributes. */
import { useState } from "preact/hooks";
import type { PersonNow } from "../../src/interfaces/api/person.ts";
import { formatNamed } from "../audit/words.ts";
import { call, writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { CopyButton } from "../component/copy-button.ts";
import { PlannedDialog } from "../component/planned-dialog.ts";
import { SafeText } from "../component/safe-text.ts";
import { Ago } from "../component/time.ts";
import { useSend } from "../component/use-send.ts";
import { AttributeCard } from "./attribute-card.ts";
import { CustomerList } from "./customer-list.ts";
import { TokenList } from "./token-list.ts";

export function PersonFacts({ place, now }: { place: Place; now: PersonNow }): View {
  const { person } = now;
  const [isChanging, setChanging] = useState(false);
  return html`<div class="card"><div class="fact"><h2>Person</h2><code class="wrap">${person.id}</code>
        <${CopyButton} text=${person.id} label="Copy the person’s id" /></div>
      <div class="fact"><h2>Address</h2><span class="wrap"><${SafeText} text=${person.email} limit=${100} /></span>
        <button data-needs="act_on_people" type="button" class="small" onClick=${() => setChanging(true)}>Change address…</button></div>
      <div class="fact"><h2>Created</h2><span><${Ago} at=${person.createdAt} /></span>
        <span class="quiet wrap">created by <${SafeText} text=${formatNamed(person.createdBy)} limit=${80} /></span></div>
      ${
        now.namesake !== null &&
        html`<div class="fact"><h2>Similar address</h2><span>The same address with another spelling of its domain: <a class="wrap" href=${pagePath(place, "people", now.namesake)}>${now.namesake}</a></span></div>`
      }
      <${MailFact} place=${place} now=${now} />
      <div class="fact"><h2>Links</h2>
        <a href=${pagePath(place, "events") + writeQuery({ person: person.id })}>All events</a>
        <a href=${pagePath(place, "mail") + writeQuery({ person: person.id })}>All mail</a>
        <a href=${pagePath(place, "catalog") + writeQuery({ tab: "receipts", person: person.id })}>All receipts</a>
        <a href=${pagePath(place, "audit-log") + writeQuery({ target: `person:${person.id}` })}>All changes</a></div></div>
    ${
      isChanging &&
      html`<${PlannedDialog} title="Change the address of ${person.email}" path=${apiPath(place, "persons", person.id, "change-address")}
        field="email" label="New address" act="Change" done="The address is changed." changes=${[apiPath(place, "persons")]} onClose=${() => setChanging(false)} />`
    }
    <${CustomerList} place=${place} now=${now} />
    <${TokenList} place=${place} now=${now} />
    <${AttributeCard} place=${place} person=${person} />`;
}

function MailFact({ place, now: { person, mailStoppedAt } }: { place: Place; now: PersonNow }): View {
  const { send, isSending } = useSend();
  const path = apiPath(place, "persons", person.id, "mail-stop");
  const stopped = mailStoppedAt !== null;
  const turn = async (): Promise<void> => {
    const changes = [apiPath(place, "persons"), apiPath(place, "mail")];
    const undo = async (): Promise<void> => {
      await call("PUT", path, { stopped });
      for (const prefix of changes) invalidate(prefix);
    };
    const done = stopped ? "Event mail is on." : "Event mail is off.";
    await send({ method: "PUT", path, body: { stopped: !stopped }, changes, done, undo, tellsRefusal: true });
  };
  return html`<div class="fact"><h2>Event mail</h2>
    <span>${stopped ? html`Off <${Ago} at=${mailStoppedAt} />` : "On"}</span>
    <button data-needs="act_on_people" type="button" class="small" disabled=${isSending} onClick=${turn}>${stopped ? "Allow event mail" : "Stop event mail"}</button></div>`;
}
