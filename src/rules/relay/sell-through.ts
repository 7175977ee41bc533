/** Makes a new relay sell the products and plans that its actions name and that nothing sells. */
import type { Change } from "../../platform/audit/audit.ts";
import { plans, savePlan } from "../../shop/selling/plan.ts";
import { products, saveProduct } from "../../shop/selling/product.ts";
import type { Writer } from "../../store/port.ts";
import type { Definition } from "./definition-shape.ts";

/** Saves the items, audited. An item that does not exist, or that something sells, does not change. Throws `relay_missing` before the relay is saved. */
export async function sellThrough(tx: Writer, change: Change, definition: Definition): Promise<void> {
  const { environmentId } = change;
  const soldThrough = { kind: "relay", relay: definition.name };
  for (const action of definition.actions) {
    if (action.type === "fulfil_product") {
      const item = await products.find(tx, environmentId, String(action.product));
      if (item === null || item.soldThrough !== null) continue;
      const { title, key, credits } = item;
      await saveProduct(tx, change, item.name, { title, key, credits, soldThrough });
    } else if (action.type === "grant_plan") {
      const item = await plans.find(tx, environmentId, String(action.plan));
      if (item === null || item.soldThrough !== null) continue;
      const { title, isDefault } = item;
      await savePlan(tx, change, item.name, { title, default: isDefault, soldThrough });
    }
  }
}
