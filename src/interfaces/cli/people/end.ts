/** Ends a person's plan with its grants, or the live grants of an entitlement (`relay people end`), as the dashboard does. */

import { writeJson } from "../../../base/json.ts";
import { Refusal } from "../../../base/refusal.ts";
import { ENTITLEMENT_NAME } from "../../../base/shape.ts";
import type { Api } from "../api/api.ts";
import { withApi } from "../api/connect.ts";
import { rejectMisread } from "../api/read-answer.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Command } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { findPerson, PERSON } from "./people.ts";

interface Ended {
  person: string;
  /** The ended subscription, or null if the name is not the person's plan. */
  subscription: { id: string; billedBy: string } | null;
  /** The ids of the ended grants. */
  grants: string[];
}

export const peopleEnd: Command = {
  words: ["people", "end"],
  summary: "end a plan or an access of a person",
  details:
    "It does not matter what gave it: a relay, a payment or a manual grant. If you end a plan, its grants end too, and the person moves to the default plan. If you end an access, every active grant of it ends. Receipts, credits and the ledger stay. To refund a payment, use the payment provider.",
  arguments: [
    PERSON,
    { name: "what", help: "a plan, a product or access:<slug>, as relay people show lists it" },
  ],
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay people end ada@example.com access:members", "relay people end ada@example.com pro"],
  async run(input, io) {
    const [name = "", what = ""] = input.positionals;
    const ended = await withApi<Ended>("write", input, io, (api) => endHolding(api, name, what));
    const { subscription, grants } = ended;
    if (subscription === null && grants.length === 0) throw rejectNothingToEnd(name, what);
    if (input.on("json")) io.print(writeJson({ ...ended, what }, 2));
    if (subscription !== null) io.inform(`The plan ${what} of ${name} has ended.`);
    if (subscription?.billedBy === "processor")
      io.inform("The card processor continues to bill it: end it there too.");
    if (grants.length > 0)
      io.inform(
        `The access of ${name} to ${what} has ended${grants.length === 1 ? "" : ` (${grants.length} grants)`}.`,
      );
  },
};

async function endHolding(api: Api, name: string, what: string): Promise<Ended> {
  const { id } = await findPerson(api, name);
  const ended: Ended = { person: id, subscription: null, grants: [] };
  // Any other text names neither a plan nor an entitlement.
  if (!ENTITLEMENT_NAME.test(what)) return ended;
  const path = `/persons/${encodeURIComponent(id)}/access/${encodeURIComponent(what)}`;
  for (let more = true; more; ) {
    const answer = await api.request<Omit<Ended, "person"> & { more: boolean }>("DELETE", path);
    if (answer.grants.some((grant) => ended.grants.includes(grant)))
      throw rejectMisread(api.url, "ends the same grants twice");
    ended.grants.push(...answer.grants);
    if (answer.subscription !== null) {
      const { id, billedBy } = answer.subscription;
      ended.subscription = { id, billedBy };
    }
    more = answer.more;
  }
  return ended;
}

function rejectNothingToEnd(name: string, what: string): Refusal {
  return new Refusal(
    "not_found",
    `${JSON.stringify(name)} does not have ${JSON.stringify(what)} now, so there is nothing to end: relay people show lists what they have.`,
  );
}
