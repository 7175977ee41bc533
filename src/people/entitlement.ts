/**
 * What an entitlement name stands for: `access:<slug>`, a product or a plan. A product stands for the key it grants, so that
 * granting, revoking and checking by the product's name all speak of one thing. It never grants anything.
 */
import { Refusal } from "../ground/refusal.ts";
import type { Reader } from "../store/port.ts";

interface Entitlement {
  kind: "access" | "product" | "plan";
  /** As written: `access:<slug>`, a product or plan name. */
  name: string;
  title: string;
  /** What stands on the grant: the name itself, or a product's key. */
  key: string;
}

const ACCESS = "access:";

/** The entitlement of this name, or null when it is no access slug, product or plan here (`entitlement_unknown`). */
export async function findEntitlement(
  tx: Reader,
  environmentId: number,
  name: string,
): Promise<Entitlement | null> {
  if (name.startsWith(ACCESS)) {
    const row = await tx.get<{ title: string }>(
      "SELECT title FROM access_slug WHERE environment_id = ?1 AND slug = ?2",
      environmentId,
      name.slice(ACCESS.length),
    );
    return row === null ? null : { kind: "access", name, title: row.title, key: name };
  }
  const product = await tx.get<{ title: string; key: string }>(
    "SELECT title, key FROM product WHERE environment_id = ?1 AND name = ?2",
    environmentId,
    name,
  );
  if (product !== null) return { kind: "product", name, title: product.title, key: product.key };
  const plan = await tx.get<{ title: string }>(
    "SELECT title FROM plan WHERE environment_id = ?1 AND name = ?2",
    environmentId,
    name,
  );
  return plan === null ? null : { kind: "plan", name, title: plan.title, key: name };
}

/** Refuses with `entitlement_unknown`. */
export async function requireEntitlement(
  tx: Reader,
  environmentId: number,
  name: string,
): Promise<Entitlement> {
  const entitlement = await findEntitlement(tx, environmentId, name);
  if (entitlement === null) throw new Refusal("entitlement_unknown", sayEntitlementUnknown(name));
  return entitlement;
}

export function sayEntitlementUnknown(name: string): string {
  return `\`entitlement\` names ${name}, which is no access slug, product or plan here: create it in the catalog, or name one that exists.`;
}

/** What a grant of `name` is held under; a name that is not in the catalog (any more) stands for itself. */
export async function resolveEntitlementKey(
  tx: Reader,
  environmentId: number,
  name: string,
): Promise<string> {
  return (await findEntitlement(tx, environmentId, name))?.key ?? name;
}
