/**
 * Refs: the provider's unique payment identifier, under which a purchase is known for good. It decides which ref an action acts under and
 * whom a ref belongs to; a ref of another purchase is refused and audited, never shared. Neither refusal heals by waiting: both are final.
 * Source: the specification's "`ref` rules".
 */
import { MAX_REF_CHARS } from "../ground/limit.ts";
import { countChars } from "../ground/text.ts";
import type { Reader, Writer } from "../store/port.ts";
import { writeAudit } from "../watch/audit.ts";
import type { ItemKind } from "./catalog-name.ts";
import { fail, type Occasion, type SaleFailure } from "./occasion.ts";
import { findPurchase, type Purchase } from "./purchase.ts";

/**
 * The ref to act under. `written`: the definition's text, undefined when absent; `render` answers null where a path names nothing
 * that identifies. Only an absent ref falls back to `rly:<eventId>`; a written one that resolves to nothing fails with `ref_unresolved`, finally.
 */
export function resolveRef(
  written: string | undefined,
  render: (text: string) => string | null,
  eventId: string,
): { ref: string } | { failure: SaleFailure } {
  if (written === undefined) return { ref: `rly:${eventId}` };
  const ref = render(written)?.trim() ?? "";
  if (ref === "") {
    return {
      failure: fail(
        "ref_unresolved",
        "`ref` resolves to no text or number on this event: name a path to the payment's identifier that every such event carries, then replay.",
        true,
      ),
    };
  }
  if (countChars(ref) <= MAX_REF_CHARS) return { ref };
  return {
    failure: fail(
      "ref_unresolved",
      `\`ref\` is longer than ${MAX_REF_CHARS} characters on this event: name the payment's identifier alone, then replay.`,
      true,
    ),
  };
}

/** The purchase under the ref where it is this person's of this item, else null; it refuses and audits nothing. */
export async function findOwnPurchase(
  tx: Reader,
  { environmentId, personId }: Occasion,
  itemKind: ItemKind,
  item: string,
  ref: string,
): Promise<Purchase | null> {
  const purchase = await findPurchase(tx, environmentId, "purchase", ref);
  const own = purchase?.personId === personId && purchase.itemKind === itemKind && purchase.item === item;
  return own ? purchase : null;
}

/** The purchase under the ref when it is this person's of this item; null when the ref is free; a failure when it is another's. */
export async function claimRef(
  tx: Writer,
  occasion: Occasion,
  itemKind: ItemKind,
  item: string,
  ref: string,
): Promise<{ own: Purchase | null } | { failure: SaleFailure }> {
  const purchase = await findPurchase(tx, occasion.environmentId, "purchase", ref);
  if (purchase === null) return { own: null };
  const same =
    purchase.personId === occasion.personId && purchase.itemKind === itemKind && purchase.item === item;
  if (same) return { own: purchase };
  await auditRefusedRef(tx, occasion, { itemKind, item, ref, purchase: purchase.id });
  const message = `\`ref\` already belongs to another purchase (${purchase.id}): use the provider's unique payment identifier.`;
  return { failure: fail("ref_used", message, true) };
}

/** One row an occasion and ref, however often the event is tried again. */
async function auditRefusedRef(
  tx: Writer,
  occasion: Occasion,
  refused: { itemKind: ItemKind; item: string; ref: string; purchase: string },
): Promise<void> {
  const { environmentId, personId, relayName, eventId } = occasion;
  const target = `ref:${refused.ref}`;
  const after = { ...refused, person: personId, relay: relayName, eventId };
  if (eventId !== null && (await isAudited(tx, environmentId, target, eventId))) return;
  await writeAudit(tx, {
    environmentId,
    atMs: occasion.nowMs,
    actor: occasion.by,
    action: "ref_refused",
    target,
    after,
  });
}

async function isAudited(
  tx: Reader,
  environmentId: number,
  target: string,
  eventId: string,
): Promise<boolean> {
  const sql = `SELECT 1 AS found FROM audit WHERE environment_id = ?1 AND target = ?2 AND event_id IS NULL
    AND action = 'ref_refused' AND instr(after, ?3) > 0 LIMIT 1`;
  return (await tx.get(sql, environmentId, target, eventId)) !== null;
}
