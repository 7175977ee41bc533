/** Which relays name what of the catalog, in which action: who sells a product, who grants a plan, and whose runs fail once it is gone. */
import { type Static, Type } from "typebox";
import type { LiveRelay } from "./live-relay.ts";

export const catalogUse = Type.Object({
  /** A product's or plan's name, or `access:<slug>`. */
  name: Type.String(),
  relay: Type.String(),
  /** The action's type. */
  action: Type.String(),
});
export type CatalogUse = Static<typeof catalogUse>;

/** The fields of actions that name something of the catalog. */
const FIELDS = ["product", "plan", "entitlement"] as const;

/** Each once, by the relay's name. */
export function listCatalogUses(relays: readonly Pick<LiveRelay, "name" | "definition">[]): CatalogUse[] {
  const uses = new Map<string, CatalogUse>();
  for (const { name: relay, definition } of relays) {
    for (const action of definition.actions) {
      for (const field of FIELDS) {
        const name = action[field];
        if (typeof name !== "string") continue;
        uses.set(`${relay} ${action.type} ${name}`, { name, relay, action: action.type });
      }
    }
  }
  return [...uses.values()].sort((one, other) => one.relay.localeCompare(other.relay));
}
