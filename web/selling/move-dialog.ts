/** Dialog that moves a purchase to another person. */
import type { PurchaseView } from "../../src/shop/selling/purchase.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { PlannedDialog } from "../component/planned-dialog.ts";

interface MoveDialogProps {
  place: Place;
  purchase: Pick<PurchaseView, "id" | "item">;
  /** The new person's address, if it is known. */
  to?: string;
  onClose: () => void;
}

export function MoveDialog({ place, purchase: { id, item }, to, onClose }: MoveDialogProps): View {
  const changes = ["purchases", "subscriptions", "persons", "grants"].map((part) => apiPath(place, part));
  return html`<${PlannedDialog} title="Move the purchase of ${item}" path=${apiPath(place, "purchases", id, "move")}
    field="person" label="New person’s address or id" given=${to} act="Move" done=${`The purchase of ${item} is moved.`}
    changes=${changes} onClose=${onClose} />`;
}
