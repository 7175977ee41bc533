/**
 * Computes what people hold from the audit log only, whose rows are in the order of the commits. Access and plans follow the order in which the
 * events arrived, which is the order of their ids. `broken` lists work that was done twice, and sales, refunds and receipts that must not exist.
 */

import { EVENT_ID } from "./event-sql.ts";
import type { RunningService } from "./running-service.ts";

const LAMP_CREDITS = 10;

/** Each person's live grants as `<entitlement> from <source>`, credits and plan, and every receipt. */
interface Held {
  people: Record<string, { grants: string[]; credits: number; plan: string }>;
  receipts: string[];
}

interface Row {
  action: string;
  target: string;
  event: string | null;
  person: string | null;
  ref: string | null;
  after: string;
}

interface Worked {
  type: string;
  outcome: string;
}

interface Grant {
  entitlement: string;
  source: string;
  /** Ref of the purchase that gave it, or null. */
  ref: string | null;
  /** The event that gave it: the first to arrive of those with its ref. */
  event: string;
}

class Account {
  credits = 0;
  /** The first event to arrive of each payment for the plan, by ref. */
  readonly paid = new Map<string, string>();
  /** The events that canceled the plan, and those that revoked each entitlement. */
  readonly canceled = new Set<string>();
  readonly taken = new Map<string, Set<string>>();
  grants: Grant[] = [];
  readonly topped = new Set<string>();

  get subscribed(): boolean {
    const last = [...this.paid.values()].sort().at(-1);
    return last !== undefined && [...this.canceled].every((event) => event < last);
  }

  get live(): Grant[] {
    const gone = ({ entitlement, event }: Grant) => [...(this.taken.get(entitlement) ?? [])].some((taken) => taken > event);
    const plan = this.subscribed ? [{ entitlement: "pro", source: "plan", ref: null, event: "" }] : [];
    return [...this.grants.filter((grant) => !gone(grant)), ...plan];
  }
}

export class SaleModel {
  /** Violations, each as one sentence. */
  readonly broken: string[] = [];
  readonly #accounts = new Map<string, Account>();
  readonly #sold = new Map<string, { person: string; refunded: boolean }>();
  readonly #invoiced = new Set<string>();
  /** `<event> <type> <ordinal>` of work that was done. */
  readonly #done = new Set<string>();

  static async read(running: RunningService): Promise<SaleModel> {
    const model = new SaleModel();
    const rows = await running.rows<Row>(
      `SELECT audit.action, audit.target, audit.event_id AS event, event.person_id AS person, audit.after,
         json_extract(event.payload, '$.mapped.ref') AS ref
       FROM audit LEFT JOIN event ON ${EVENT_ID} = audit.event_id
       WHERE audit.action IN ('run', 'credits.changed') ORDER BY audit.seq`,
    );
    for (const row of rows) {
      if (row.action === "run") model.#takeRun(row);
      else model.#account(row.target.slice("person:".length)).credits += JSON.parse(row.after).amount;
    }
    return model;
  }

  /** Reads what people hold from the store, in the same form. */
  static async lookAt(running: RunningService): Promise<Held> {
    const people: Held["people"] = {};
    const now = running.clock.now();
    for (const { id } of await running.rows<{ id: string }>("SELECT id FROM person")) {
      const grants = await running.rows<{ name: string }>(
        `SELECT entitlement || ' from ' || source AS name FROM access_grant
         WHERE person_id = ?1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?2)`,
        id,
        now,
      );
      const [credits] = await running.rows<{ sum: number; last: number }>(
        `SELECT coalesce(sum(amount), 0) AS sum, coalesce((SELECT balance FROM credit
           WHERE person_id = ?1 ORDER BY seq DESC LIMIT 1), 0) AS last FROM credit WHERE person_id = ?1`,
        id,
      );
      if (credits?.sum !== credits?.last) throw new Error("The last line's balance is not the ledger's sum.");
      const { plan } = (await running.api("GET", `/persons/${id}`)).body;
      people[id] = { grants: grants.map(({ name }) => name).sort(), credits: credits?.sum ?? 0, plan };
    }
    const receipts = await running.rows<{ name: string }>("SELECT kind || ' ' || ref || ' ' || person_id AS name FROM purchase");
    return { people, receipts: receipts.map(({ name }) => name).sort() };
  }

  holdings(people: readonly string[]): Held {
    const held: Held["people"] = {};
    for (const person of people) {
      const { live, credits, subscribed } = this.#account(person);
      const names = live.map(({ entitlement, source }) => `${entitlement} from ${source}`);
      held[person] = { grants: names.sort(), credits, plan: subscribed ? "pro" : "free" };
    }
    const sales = [...this.#sold].flatMap(([ref, { person, refunded }]) => [
      `purchase ${ref} ${person}`,
      ...(refunded ? [`refund ${ref} ${person}`] : []),
    ]);
    return { people: held, receipts: [...sales, ...this.#invoiced].sort() };
  }

  #account(person: string): Account {
    const found = this.#accounts.get(person) ?? new Account();
    this.#accounts.set(person, found);
    return found;
  }

  #takeRun(row: Row): void {
    const seen = new Map<string, number>();
    for (const { type, outcome } of JSON.parse(row.after) as Worked[]) {
      const ordinal = (seen.get(type) ?? 0) + 1;
      seen.set(type, ordinal);
      if (outcome === "done" || outcome === "skipped") this.#arrive(type, row);
      if (outcome !== "done") continue;
      const work = `${row.event} ${type} ${ordinal}`;
      if (this.#done.has(work)) this.broken.push(`${work} was done twice`);
      this.#done.add(work);
      this.#work(type, ordinal, row);
    }
  }

  /** Applies what depends on the order of arrival, whether this run did the work or found it done. */
  #arrive(type: string, { person, event: arriving, ref: of }: Row): void {
    const [account, event, ref] = [this.#account(person ?? ""), arriving ?? "", of ?? ""];
    const first = (known: string | undefined) => (known === undefined || event < known ? event : known);
    if (type === "grant_plan") account.paid.set(ref, first(account.paid.get(ref)));
    if (type === "revoke_plan") account.canceled.add(event);
    if (type === "fulfil_product") for (const grant of account.grants) if (grant.ref === ref) grant.event = first(grant.event);
  }

  #work(type: string, ordinal: number, { target, person: whose, ref: of, event: arriving }: Row): void {
    const [relay, person, ref, event] = [target.slice("relay:".length), whose ?? "", of ?? "", arriving ?? ""];
    const account = this.#account(person);
    switch (type) {
      case "fulfil_product":
        if (this.#sold.has(ref)) this.broken.push(`${ref} was sold twice`);
        this.#sold.set(ref, { person, refunded: false });
        account.credits += LAMP_CREDITS;
        account.grants.push({ entitlement: "lamp", source: "purchase", ref, event });
        break;
      case "refund_product": {
        const sale = this.#sold.get(ref);
        if (sale?.person !== person || sale.refunded) this.broken.push(`${ref} was refunded wrongly`);
        else sale.refunded = true;
        account.credits -= Math.min(LAMP_CREDITS, account.credits);
        account.grants = account.grants.filter((grant) => grant.ref !== ref);
        break;
      }
      case "grant_credits":
        if (relay === "top" && account.topped.has(ref)) this.broken.push(`${ref} was topped up twice`);
        if (relay === "top") account.topped.add(ref);
        account.credits += relay === "top" ? 5 : 3;
        break;
      case "grant_plan": {
        const receipt = `purchase in-${ref} ${person}`;
        if (this.#invoiced.has(receipt)) this.broken.push(`${receipt} was recorded twice`);
        this.#invoiced.add(receipt);
        break;
      }
      case "grant_access":
        account.grants.push({ entitlement: "access:club", source: "relay", ref: null, event });
        break;
      case "revoke_access": {
        const entitlement = ordinal === 1 ? "access:club" : "lamp";
        account.taken.set(entitlement, (account.taken.get(entitlement) ?? new Set()).add(event));
        break;
      }
    }
  }
}
