/**
 * Sends the traffic of a steady day of a small shop and records what must result. It sends signed webhooks to two environments, with duplicates,
 * ignored events and forged ones. It also changes records by the API, and sends notices whose target refuses the first attempts. It asserts only the
 * response to each request.
 */
import { expect } from "bun:test";
import type { CallOutcome, CallRequest, OutboundCaller } from "../../src/platform/outbound/caller.ts";
import { BROKEN, OK } from "./fake-caller.ts";
import { HOOK_SECRET, receiverDefinition, signedCall, writeOrder } from "./relay-definition.ts";
import type { Answer, RunningService } from "./running-service.ts";

const LIVE_SECRET = "theLiveEnvironmentsSecret24";
const PEOPLE = ["ada", "ben", "cyd", "dov"];
const TEXT = { text: { type: "text" } };

const BEAT = {
  name: "beat",
  trigger: { kind: "schedule", every: "15m" },
  actions: [{ type: "write_record", collection: "ticks", data: { text: "{{tick.periodStart}}" } }],
};
const WATCHER = {
  name: "watcher",
  trigger: { kind: "data_change", collection: "tasks", on: ["created", "updated", "deleted"] },
  actions: [{ type: "write_record", collection: "changes", data: { text: "{{record.data.text}}" } }],
};
const PAID = { event_type: "order.paid" };
const ORDER_MAP = { event_id: "id", event_type: "type", amount: "amount", person_email: "buyer" };

/** Refuses the first attempts of a notice, as its event's number says. It refuses every attempt of the notice `never`. */
export class StubbornTarget implements OutboundCaller {
  /** Number of requests for each event. */
  readonly posts = new Map<string, number>();

  async call({ body }: CallRequest): Promise<CallOutcome> {
    const { event } = JSON.parse(body) as { event: { mapped: { event_id: string } } };
    const id = event.mapped.event_id;
    const count = (this.posts.get(id) ?? 0) + 1;
    this.posts.set(id, count);
    return id !== "never" && count > refusalsOf(id) ? OK : BROKEN;
  }
}

/** Returns how many attempts of a notice are refused: 0, 1 or 2. */
export function refusalsOf(noticeId: string): number {
  return Number(noticeId.slice(1)) % 3;
}

/** Sends the traffic and lists what it sent, in order. */
export class DayTraffic {
  readonly #running: RunningService;
  readonly orders: string[] = [];
  readonly live: string[] = [];
  readonly notices: string[] = [];
  readonly changes: string[] = [];
  /** Secrets that the sender of orders signs with, in turn. */
  secrets: string[] = [HOOK_SECRET];
  #lastId = "";

  constructor(running: RunningService) {
    this.#running = running;
  }

  /** Creates the collections and the relays of both environments. */
  async open(): Promise<void> {
    const { api } = this.#running;
    const order = { order: { type: "text" }, amount: { type: "text" } };
    for (const environment of ["development", "production"] as const) {
      await this.#made(api("POST", "/collections", shared("orders", order), environment));
      await this.#made(api("POST", "/collections", shared("ticks", TEXT), environment));
      await this.#made(api("POST", "/relays", { definition: BEAT }, environment));
    }
    for (const name of ["tasks", "changes", "notes"]) await this.#made(api("POST", "/collections", shared(name, TEXT)));
    const credits = { type: "grant_credits", amount: 5 };
    const orders = receiverDefinition({ map: ORDER_MAP, when: PAID, actions: [writeOrder, credits] });
    await this.#made(api("POST", "/relays", { definition: orders, secret: HOOK_SECRET }));
    const live = { definition: receiverDefinition({ when: PAID }), secret: LIVE_SECRET };
    await this.#made(api("POST", "/relays", live, "production"));
    const note = { type: "write_record", collection: "notes", data: { text: "{{mapped.event_id}}" } };
    const call = { type: "call_url", url: "https://example.com/notice" };
    const notices = receiverDefinition({ name: "notices", actions: [note, call] });
    await this.#made(api("POST", "/relays", { definition: notices, secret: HOOK_SECRET }));
    await this.#made(api("POST", "/relays", { definition: WATCHER }));
  }

  /** Sends one order to each environment, a duplicate, an order that the filter ignores and a forged order. */
  async sendOrders(number: number): Promise<void> {
    const secret = this.secrets[number % this.secrets.length] ?? HOOK_SECRET;
    const buyer = `${PEOPLE[number % PEOPLE.length]}@example.com`;
    const order = { id: `o${number}`, type: "order.paid", amount: 4200, buyer };
    const first = await this.#hook("orders", order, secret);
    expect([first.status, first.body.duplicate]).toEqual([200, undefined]);
    this.orders.push(order.id);
    const again = await this.#hook("orders", order, secret);
    expect(again.body).toEqual({ received: true, duplicate: true, eventId: first.body.eventId });
    expect(first.body.eventId > this.#lastId).toBe(true);
    this.#lastId = first.body.eventId;
    const ignored = await this.#hook("orders", { ...order, id: `i${number}`, type: "order.seen" }, secret);
    expect(ignored.body).toEqual({ received: true, ignored: "when" });
    const live = await this.#hook("orders", { id: `l${number}`, type: "order.paid", amount: 1 }, LIVE_SECRET);
    expect(live.status).toBe(200);
    const forged = await this.#hook("orders", { ...order, id: `f${number}` }, "nobodysSecretOfTwentyFour1");
    expect([forged.status, forged.body.code]).toEqual([401, "bad_signature"]);
    this.live.push(`l${number}`);
  }

  async sendNotice(id: string): Promise<string> {
    const sent = await this.#hook("notices", { id, type: "note" }, HOOK_SECRET);
    expect(sent.status).toBe(200);
    this.notices.push(id);
    return sent.body.eventId;
  }

  /** Creates a task, changes it, saves it again unchanged, and deletes every second task. */
  async changeTask(number: number): Promise<void> {
    const { api } = this.#running;
    const made = await this.#made(api("POST", "/collections/tasks/records", { data: { text: `t${number}` } }));
    const path = `/collections/tasks/records/${made.body.record.id}`;
    for (let save = 0; save < 2; save++) expect((await api("PUT", path, { data: { text: `t${number} done` } })).status).toBe(200);
    this.changes.push(`t${number}`, `t${number} done`);
    if (number % 2 === 1) return;
    expect((await api("DELETE", path)).status).toBeLessThan(300);
    this.changes.push(`t${number} done`);
  }

  async #made(answer: Promise<Answer>): Promise<Answer> {
    const made = await answer;
    if (made.status !== 201) throw new Error(`It was refused: ${JSON.stringify(made.body)}`);
    return made;
  }

  #hook(name: string, event: object, secret: string): Promise<Answer> {
    return this.#running.hook(name, signedCall(event, secret));
  }
}

function shared(name: string, fields: object): object {
  return { name, kind: "shared", fields };
}
