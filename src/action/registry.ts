/** Every action type, in the order of the specification's table. A new action is its own file and one line here. */
import { callUrl } from "./call-url.ts";
import type { ActionType } from "./contract.ts";
import { emailPerson } from "./email-person.ts";
import { fulfilProduct } from "./fulfil-product.ts";
import { grantAccess } from "./grant-access.ts";
import { grantCredits } from "./grant-credits.ts";
import { grantPlan } from "./grant-plan.ts";
import { refundProduct } from "./refund-product.ts";
import { revokeAccess } from "./revoke-access.ts";
import { revokePlan } from "./revoke-plan.ts";
import { writeRecord } from "./write-record.ts";

export const ACTIONS: readonly ActionType[] = [
  writeRecord,
  grantAccess,
  revokeAccess,
  grantCredits,
  fulfilProduct,
  refundProduct,
  grantPlan,
  revokePlan,
  emailPerson,
  callUrl,
];

const BY_TYPE: ReadonlyMap<string, ActionType> = new Map(ACTIONS.map((action) => [action.type, action]));

/** The action of this type, or null when there is none. */
export function findAction(type: string): ActionType | null {
  return BY_TYPE.get(type) ?? null;
}
