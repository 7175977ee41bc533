/** Shows similar people who bought something, on the page of a person who has nothing: the customer paid under another address. */
import { useState } from "preact/hooks";
import type { PersonNow } from "../../src/interfaces/api/person.ts";
import type { SimilarBuyer } from "../../src/shop/selling/similar-buyer.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { PersonLink } from "../component/person-link.ts";
import { SafeText } from "../component/safe-text.ts";
import { Ago } from "../component/time.ts";
import { MoveDialog } from "../selling/move-dialog.ts";

export function SimilarBuyers({ place, person }: { place: Place; person: PersonNow["person"] }): View {
  const { data } = useLoad<{ similar: SimilarBuyer[] }>(apiPath(place, "persons", person.id, "similar"));
  const [moving, setMoving] = useState<SimilarBuyer | null>(null);
  const items = data?.similar ?? [];
  if (items.length === 0) return false;
  return html`<section class="card" aria-label="Similar people who bought something">
    <h2>Similar people who bought something</h2>
    <ul class="access-list">${items.map(
      (
        one,
      ) => html`<li key=${one.person} class="access-line"><span class="access-name">Bought <b><${SafeText} text=${one.purchase.item} limit=${60} /></b>
        <${Ago} at=${one.purchase.createdAt} /> as <${PersonLink} place=${place} id=${one.person} email=${one.email} /></span>
        <button data-needs="act_on_people" type="button" class="small" disabled=${person.status === "suspended"} onClick=${() => setMoving(one)}>Move purchase to ${person.email}…</button></li>`,
    )}</ul>
    ${moving !== null && html`<${MoveDialog} place=${place} purchase=${moving.purchase} to=${person.email} onClose=${() => setMoving(null)} />`}
  </section>`;
}
