/**
 * Finds two relays that one payment may start although they sell different things: their providers sign alike, and no mapped value that
 * both filters read separates them. A buyer of one thing would then get the other too.
 */

import type { Warning } from "../../base/refusal.ts";
import { showNames } from "../../base/shape.ts";
import { findAction } from "../action/registry.ts";
import type { ReceiverTrigger } from "../trigger/receiver.ts";
import type { VerifyFields } from "../verify/contract.ts";
import type { Definition } from "./definition-shape.ts";

/** The most other relays that one warning names. */
const MAX_NAMED = 5;

/** Warns if another relay sells something else and may run on the same payment. `others` may contain the relay itself. */
export function listOverlapWarnings(definition: Definition, others: readonly Definition[]): Warning[] {
  const { name, trigger } = definition;
  const sold = listSold(definition);
  if (trigger.kind !== "receiver" || sold.size === 0) return [];
  const both = others.filter(
    (other) =>
      other.name !== name &&
      [...listSold(other)].some((item) => !sold.has(item)) &&
      other.trigger.kind === "receiver" &&
      readProvider(other.trigger.verify) === readProvider(trigger.verify) &&
      mayBothMatch(trigger, other.trigger),
  );
  if (both.length === 0) return [];
  const names = showNames(both.slice(0, MAX_NAMED).map((other) => other.name));
  const [relays, sell] = both.length === 1 ? ["the relay", "sells"] : ["the relays", "sell"];
  const items = showNames([...new Set(both.flatMap((other) => [...listSold(other)]))].slice(0, MAX_NAMED));
  const message = `\`trigger.when\`: ${relays} ${names} ${sell} ${items}, and one payment can match both filters, so a buyer of one product gets the other too. Map the field that distinguishes products, such as data.object.metadata.product, and match it in \`when\` of both.`;
  return [{ code: "sales_overlap", field: "trigger.when", message }];
}

/** Reports whether the relay sells when a provider's request arrives. */
export function sellsOnCall(definition: Definition): boolean {
  return definition.trigger.kind === "receiver" && listSold(definition).size > 0;
}

/** Products and plans share one name space. */
function listSold({ actions }: Definition): Set<string> {
  return new Set(
    actions.flatMap((action) => {
      const type = findAction(action.type);
      return type?.sells === true ? type.references(action).map((one) => one.name) : [];
    }),
  );
}

/** Identifies a provider by where its signature is. `processor` also reads Stripe's header. */
function readProvider(verify: VerifyFields): string {
  const { scheme, header, signatureField } = verify as VerifyFields & Record<string, unknown>;
  if (scheme === "processor") return "header stripe-signature";
  if (typeof header === "string") return `header ${header.toLowerCase()}`;
  return typeof signatureField === "string" ? `field ${signatureField}` : scheme;
}

/** Filters exclude one another if they ask for different texts of one path. */
function mayBothMatch(one: ReceiverTrigger, other: ReceiverTrigger): boolean {
  const wanted = listFilterTexts(other);
  return [...listFilterTexts(one)].every(([path, texts]) => {
    const otherTexts = wanted.get(path);
    return otherTexts === undefined || texts.some((text) => otherTexts.includes(text));
  });
}

/** The texts that a filter accepts, by the path from which they are read. */
function listFilterTexts({ map, when = {} }: ReceiverTrigger): Map<string, string[]> {
  return new Map(Object.entries(when).map(([name, wanted]) => [map[name] ?? "", [wanted].flat()]));
}
