/** Additional warnings of a change of production, which the approving owner should read first. */
import { isJsonObject } from "../../base/json.ts";
import type { Warning } from "../../base/refusal.ts";
import type { Definition } from "../../rules/relay/definition-shape.ts";
import { findRelay } from "../../rules/relay/relay.ts";
import { withSourceScheme } from "../../rules/relay/source.ts";
import { describeCapturedCall, unsignedWarning } from "../../rules/relay/unsigned-rule.ts";
import { findDefaultPlan } from "../../shop/selling/plan.ts";
import type { Reader } from "../../store/port.ts";
import { type Entry, sellerOf } from "./plan.ts";

/** Adds the opt-in's warning to every change, even if the opt-in allows no more than before. */
export async function addOptInWarning(
  tx: Reader,
  environmentId: number,
  definition: Definition,
  warnings: Warning[],
): Promise<Warning[]> {
  const optIn = unsignedWarning(await withSourceScheme(tx, environmentId, definition));
  const isWarned = optIn === null || warnings.some(({ code }) => code === optIn.code);
  return isWarned ? warnings : [optIn, ...warnings];
}

/** Warns of what saving this catalog item means for buyers in production. Runs before the save, and after the relays' saves. */
export async function listProductionWarnings(
  tx: Reader,
  environmentId: number,
  entry: Entry,
): Promise<Warning[]> {
  const { kind, name } = entry;
  if (kind !== "product" && kind !== "plan") return [];
  const link = linkOf(entry.after);
  const warnings: Warning[] = [];
  if (link !== null && link !== linkOf(entry.before)) {
    const message = `\`soldThrough.url\` is ${link}, which production does not have yet: buyers pay through it, so make sure that it is not a test link.`;
    warnings.push({ code: "payment_link_goes_live", field: "soldThrough.url", message });
  }
  const seller = sellerOf(entry.after);
  const relay = seller === null ? null : await findRelay(tx, environmentId, seller);
  const sold = relay === null ? null : await withSourceScheme(tx, environmentId, relay.definition);
  if (sold !== null && describeCapturedCall(sold) !== null) {
    const message = `\`soldThrough.relay\` is ${seller}, which acts on events that its sender does not sign: anyone who captures one request can give ${name} to any person.`;
    warnings.push({ code: "unsigned_events", field: "soldThrough.relay", message });
  }
  const current = kind === "plan" && isDefault(entry.after) ? await findDefaultPlan(tx, environmentId) : null;
  if (current !== null && current.name !== name) {
    const message = `\`default\` is true, so ${name} takes the place of ${current.name}: everybody without a subscription is on ${name} from then on.`;
    warnings.push({ code: "default_plan_moves", field: "default", message });
  }
  return warnings;
}

function linkOf(item: Entry["after"]): string | null {
  const sold = isJsonObject(item) ? item.soldThrough : null;
  return isJsonObject(sold) && typeof sold.url === "string" ? sold.url : null;
}

function isDefault(item: Entry["after"]): boolean {
  return isJsonObject(item) && item.default === true;
}
