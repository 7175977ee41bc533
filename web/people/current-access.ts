/** Current state of a person: access, credits, plan and purchases, each with its source and a way to end it. */
import { useState } from "preact/hooks";
import type { PersonNow } from "../../src/interfaces/api/person.ts";
import type { PurchaseView } from "../../src/shop/selling/purchase.ts";
import type { Page } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { EndDialog } from "../component/end-dialog.ts";
import { SafeText } from "../component/safe-text.ts";
import { Ago } from "../component/time.ts";
import { PaymentButton } from "../selling/payment-dialog.ts";
import { AccessCard } from "./access-card.ts";
import { SourceLink } from "./source-link.ts";

const SHOWN_PURCHASES = 3;
const REFRESH_MS = 10_000;

export function CurrentAccess({ place, now }: { place: Place; now: PersonNow }): View {
  return html`<section class="has-now" aria-label="Current access">
    <div class="has-part"><${AccessCard} place=${place} now=${now} />
      <${PurchaseCard} place=${place} person=${now.person} /></div>
    <div class="has-part has-figures"><${CreditCard} now=${now} />
      <${PlanCard} place=${place} now=${now} /></div>
  </section>`;
}

function CreditCard({ now }: { now: PersonNow }): View {
  return html`<div class="card"><h2>Credits</h2>
    <p class="has-number">${formatNumber(now.credits)}</p>
    <p class="quiet">The timeline shows each change.</p></div>`;
}

function PlanCard({ place, now }: { place: Place; now: PersonNow }): View {
  const { plan, subscription } = now;
  const [isEnding, setEnding] = useState(false);
  return html`<div class="card"><h2>Plan</h2>
    <p class="has-head"><b>${plan ?? html`<span class="quiet">None</span>`}</b>
      ${plan !== null && subscription === null && html`<span class="quiet">the default plan</span>`}</p>
    ${
      subscription !== null &&
      html`<div class="held-from"><${SourceLink} place=${place} relay=${subscription.relay} eventId=${subscription.eventId} by="billed by the card processor" />
        <span class="quiet">· <${Ago} at=${subscription.startedAt} /></span></div>
      <button data-needs="act_on_people" type="button" class="quiet-danger small" onClick=${() => setEnding(true)}>End plan…</button>`
    }
    ${
      isEnding &&
      subscription !== null &&
      html`<${EndDialog} title="End the plan ${subscription.plan}?" method="POST" path=${apiPath(place, "subscriptions", subscription.id, "end")}
        words=${`Everything that the plan grants ends at once. The person moves to the default plan.${subscription.billedBy === "processor" ? " Relay does not notify the payment processor. End the subscription there too, or the customer is charged again." : ""}`}
        act="End the plan" done="The plan ${subscription.plan} has ended." changes=${[apiPath(place, "persons")]} onClose=${() => setEnding(false)} />`
    }</div>`;
}

function PurchaseCard({ place, person }: { place: Place; person: PersonNow["person"] }): View {
  const { id } = person;
  const path = apiPath(place, "purchases") + writeQuery({ person: id, limit: SHOWN_PURCHASES });
  const { data, error } = useLoad<Page<PurchaseView>>(path, REFRESH_MS);
  const items = data?.items ?? [];
  return html`<div class="card"><h2>Purchases</h2>
    ${
      data === undefined
        ? html`<p class="quiet">${error ?? "Loading…"}</p>`
        : items.length === 0
          ? html`<p class="has-head"><span class="quiet">None</span></p>`
          : html`<ul class="access-list">${items.map(
              (
                one,
              ) => html`<li key=${one.id} class="access-line"><span class="access-name"><b><${SafeText} text=${one.item} limit=${60} /></b>
                ${one.kind === "refund" ? html`<span class="chip">refund</span>` : one.refundedBy !== null && html`<span class="chip">refunded</span>`}</span>
                <div class="held-from"><${SourceLink} place=${place} relay=${one.relay} eventId=${one.eventId} by="by the app’s processor" />
                  <span class="quiet">· <${Ago} at=${one.createdAt} /></span></div></li>`,
            )}</ul>`
    }
    ${data?.next != null && html`<a href=${pagePath(place, "catalog") + writeQuery({ tab: "receipts", person: id })}>All receipts</a>`}
    <${PaymentButton} place=${place} person=${person} /></div>`;
}
