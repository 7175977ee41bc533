/**
 * What people hold, worked out from the audit alone: its rows stand in the order the work was committed in. Work that says it was done though
 * it had been done before is broken; so is a receipt, a line or a key too many.
 */

import { EVENT_ID } from "./event-sql.ts";
import type { RunningService } from "./running-service.ts";

const LAMP_CREDITS = 10;

/** By person: live grants as `<entitlement> from <source>`, credits, the plan; and every receipt. */
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
  /** Of a purchase. */
  ref: string | null;
}

class Account {
  credits = 0;
  subscribed = false;
  /** The events that paid for the plan and ended it, or would have, the last to arrive of each: their ids rise as they arrive. */
  paidBy = "";
  endedBy = "";
  grants: Grant[] = [];
  readonly topped = new Set<string>();
}

export class SaleModel {
  /** One sentence each. */
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

  /** What the store says, in the model's words. */
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
      const { grants, credits, subscribed } = this.#account(person);
      const names = grants.map(({ entitlement, source }) => `${entitlement} from ${source}`);
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
      if (type === "revoke_plan" && outcome === "skipped") this.#noteEnd(row);
      if (outcome !== "done") continue;
      const work = `${row.event} ${type} ${ordinal}`;
      if (this.#done.has(work)) this.broken.push(`${work} was done twice`);
      this.#done.add(work);
      this.#work(type, ordinal, row.target.slice("relay:".length), row.person ?? "", row.ref ?? "");
      if (type === "grant_plan" || type === "revoke_plan") this.#workPlan(type, row);
    }
  }

  /** Plans go by the order of arrival. */
  #workPlan(type: "grant_plan" | "revoke_plan", { event, person, ref }: Row): void {
    const account = this.#account(person ?? "");
    const id = event ?? "";
    if (type === "revoke_plan") {
      if (!account.subscribed) this.broken.push(`${person} had no plan to end`);
      if (account.paidBy > id) this.broken.push(`${id} ended what a later event paid for`);
      account.subscribed = false;
      account.endedBy = id;
      account.grants = account.grants.filter(({ source }) => source !== "plan");
      return;
    }
    const receipt = `purchase in-${ref} ${person}`;
    if (this.#invoiced.has(receipt)) this.broken.push(`${receipt} was recorded twice`);
    this.#invoiced.add(receipt);
    if (!account.subscribed && account.endedBy > id) return;
    if (!account.subscribed) account.grants.push({ entitlement: "pro", source: "plan", ref: null });
    if (!account.subscribed || id > account.paidBy) account.paidBy = id;
    account.subscribed = true;
  }

  #noteEnd({ event, person }: Row): void {
    const account = this.#account(person ?? "");
    if (!account.subscribed && (event ?? "") > account.endedBy) account.endedBy = event ?? "";
  }

  #work(type: string, ordinal: number, relay: string, person: string, ref: string): void {
    const account = this.#account(person);
    switch (type) {
      case "fulfil_product":
        if (this.#sold.has(ref)) this.broken.push(`${ref} was sold twice`);
        this.#sold.set(ref, { person, refunded: false });
        account.credits += LAMP_CREDITS;
        account.grants.push({ entitlement: "lamp", source: "purchase", ref });
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
      case "grant_access":
        account.grants.push({ entitlement: "access:club", source: "relay", ref: null });
        break;
      case "revoke_access": {
        const entitlement = ordinal === 1 ? "access:club" : "lamp";
        account.grants = account.grants.filter((grant) => grant.entitlement !== entitlement);
        break;
      }
    }
  }
}
