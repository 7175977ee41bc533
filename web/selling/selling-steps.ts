/** The three steps that sell a product through a relay. Each step is marked as done when its result exists, and all stay until the last one. */
import type { CatalogUse } from "../../src/rules/relay/catalog-edit.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { AskOwnerLine } from "../component/ask-owner.ts";
import { Icon } from "../component/icon.ts";
import type { Item } from "./item-form.ts";

/** Template of a relay that sells. */
const PAID = "checkout";

interface Step {
  title: string;
  done: boolean;
  /** Instruction, shown until the step is done. */
  how: View;
}

export function SellingSteps({
  place,
  products,
  uses,
}: {
  place: Place;
  products: readonly Item[];
  uses: readonly CatalogUse[];
}): View {
  const steps: Step[] = [
    {
      title: "Create the product",
      done: products.length > 0,
      how: html`<p>A product gives an entitlement, credits, or both.</p>`,
    },
    {
      title: "Create the relay",
      done: uses.some(({ action }) => action === "fulfil_product"),
      how: html`<${AskOwnerLine} needs="edit_definitions" to="do this" /><p data-needs="edit_definitions"><a href=${pagePath(place, "relays", "new") + writeQuery({ step: "template" })}>Choose “Sell with …”</a> for all relays of your provider, or <a href=${pagePath(place, "relays", "new") + writeQuery({ from: PAID })}>create a relay</a> that your provider’s webhook sends each payment to. Its action is <code>fulfil_product</code> with the product, and the payment’s id as <code>ref</code>.</p>`,
    },
    {
      title: "Sell the product through the relay",
      done: products.some(({ soldThrough = null }) => soldThrough !== null),
      how: html`<p>Open the product and set that relay under “Sold through”. Each paid event then gives the product to the buyer, once per payment, and writes a receipt.</p>
        <p class="quiet">A product can also have a payment link of your processor. Your server then reports each payment (<code>POST …/receipts</code>).</p>`,
    },
  ];
  if (steps.every(({ done }) => done) || isPaidByLink(products)) return null;
  const next = steps.findIndex(({ done }) => !done);
  return html`<section class="block card selling-steps" aria-label="How to sell a product through a relay"><h2>How to sell a product through a relay</h2>
    <ol class="first-steps">${steps.map(
      ({ title, done, how }, at) =>
        html`<li key=${title} class=${done ? "first-step done" : at === next ? "first-step next" : "first-step"}>
        <span class="first-mark" aria-hidden="true">${done ? html`<${Icon} name="check" size=${14} />` : at + 1}</span>
        <div><h3>${title}${done && html`<span class="off-screen"> (done)</span>`}</h3>${!done && how}</div></li>`,
    )}</ol></section>`;
}

/** A shop with payment links needs no relay. */
function isPaidByLink(products: readonly Item[]): boolean {
  return products.some(({ soldThrough = null }) => soldThrough !== null && soldThrough.kind !== "relay");
}
