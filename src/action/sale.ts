/**
 * What the four actions of relay-sold products and plans share: a catalog name, a ref and its rules, the event's person. Each action's file
 * says what it does with them. Source: the specification's "Actions", "ref rules".
 */
import { Type } from "typebox";
import type { Outcome } from "../ground/outcome.ts";
import type { Problem } from "../ground/refusal.ts";
import { type RelaySale, readRelaySale, resolveRef } from "../selling/sale.ts";
import type { Writer } from "../store/port.ts";
import type { DatabaseAction } from "./contract.ts";
import { actionShape, catalogNameShape, checkTemplateText, refShape } from "./shape.ts";

/** An action as written: `product` or `plan` by name, and perhaps a ref. */
type Sale<Name extends string, Item extends "product" | "plan"> = {
  type: Name;
  ref?: string;
} & Record<Item, string>;

interface SaleWords<Name extends string, Item extends "product" | "plan"> {
  type: Name;
  item: Item;
  /** For lists: "Fulfil a product". */
  title: string;
  effect: "gives" | "takes";
  /** One sentence for editors. */
  description: string;
  examples: readonly Sale<Name, Item>[];
  /** Does it for the person, the named item and the resolved ref. */
  work(tx: Writer, sale: RelaySale, name: string, ref: string): Promise<Outcome>;
}

export function makeSaleAction<const Name extends string, const Item extends "product" | "plan">(
  sale: SaleWords<Name, Item>,
): DatabaseAction<Sale<Name, Item>> {
  const { type, item, title, effect, examples, work } = sale;
  const shape = actionShape(type, title, sale.description, {
    [item]: catalogNameShape(item),
    ref: Type.Optional(refShape),
  });
  return {
    type,
    title,
    effect,
    shape,
    sends: false,
    needsPerson: () => true,
    check: ({ ref }): Problem[] => (ref === undefined ? [] : checkTemplateText("ref", ref)),
    references: (action) => [{ kind: item, name: action[item], field: item }],
    target: (action) => action[item],
    examples,

    async apply(tx, action, run) {
      const found = await readRelaySale(tx, run);
      if ("failure" in found) return found.failure;
      const target = resolveRef(action.ref, (text) => run.renderRef(text), run.event.id);
      if ("failure" in target) return target.failure;
      return work(tx, found.sale, action[item], target.ref);
    },
  };
}
