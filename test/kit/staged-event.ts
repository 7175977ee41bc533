/** Staged failures of events: accepted requests whose event fails or waits. */
import { HOUR, MINUTE, type StagedFailure, type Stand } from "./staged-failure.ts";

const OF_PERSON = { event_id: "id", person_id: "p" };
const MAIL = { type: "email_person", subject: "Hello", text: "Hello {{person.email}}." };

async function mailing(stand: Stand, body: object): Promise<void> {
  const { version } = (await stand.api("GET", "/settings")).body.settings;
  await stand.change("PUT", "/settings", { version, mail: body });
  await stand.relay({ map: OF_PERSON, actions: [MAIL] });
  await stand.call({ id: "a", p: await stand.person() });
  await stand.pass(2_000);
}

async function hold(stand: Stand): Promise<void> {
  const { version } = (await stand.api("GET", "/settings")).body.settings;
  await stand.change("PUT", "/settings", { version, held: true });
}

export const STAGED_EVENTS: readonly StagedFailure[] = [
  {
    name: "a path that names nothing",
    async stage(stand) {
      await stand.relay({ map: { event_id: "id", event_type: "type", amount: "data.amuont" } });
      await stand.call({ id: "a", data: { amount: 4 } });
      await stand.pass(2_000);
    },
    where: ["log"],
    cause:
      /\{\{mapped\.amount\}\} resolves to nothing in this event and was left empty: the map reads it from data\.amuont, where the event holds nothing/,
  },
  {
    name: "nobody found",
    async stage(stand) {
      await stand.relay({ map: OF_PERSON, actions: [{ type: "grant_credits", amount: 5 }] });
      for (let sent = 0; sent < 4; sent++) {
        await stand.call({ id: `a${sent}`, p: "per_nobody" });
        await stand.pass(30 * MINUTE);
      }
    },
    where: ["log", "problem", "alert"],
    cause: /No event of orders has found its person|person_id resolved to no person, so no action ran/,
  },
  {
    name: "paused",
    async stage(stand) {
      await stand.relay();
      await stand.change("POST", "/relays/orders/pause", {});
      await stand.call({ id: "a" });
      await stand.pass(2_000);
    },
    where: ["log"],
    cause: /an event waits.*paused|paused.*an event waits/,
  },
  {
    name: "held",
    async stage(stand) {
      await stand.relay();
      await hold(stand);
      await stand.call({ id: "a" });
      await stand.pass(2_000);
    },
    where: ["log"],
    cause: /an event waits.*hold|hold.*an event waits/,
  },
  {
    name: "called URL down",
    async stage(stand) {
      stand.called.status = 500;
      await stand.relay({ actions: [stand.notice] });
      await stand.call({ id: "a" });
      await stand.pass(MINUTE);
      for (let turn = 0; turn < 4; turn++) await stand.pass(15 * MINUTE);
    },
    where: ["log", "problem", "alert"],
    cause: /The URL answered 500: only a 2xx status is a success/,
  },
  {
    name: "not sold here",
    async stage(stand) {
      await stand.change("PUT", "/products/lamp", {});
      await stand.relay({ map: OF_PERSON, actions: [{ type: "fulfil_product", product: "lamp", ref: "{{mapped.event_id}}" }] });
      await stand.call({ id: "a", p: await stand.person() });
      await stand.pass(2_000);
    },
    where: ["answer", "log", "alert"],
    cause: /lamp is not sold through this relay|product_not_sold_here|not sold through/,
  },
  {
    name: "empty ref",
    async stage(stand) {
      await stand.change("PUT", "/products/lamp", {});
      await stand.relay({
        map: { ...OF_PERSON, payment: "payment" },
        actions: [{ type: "fulfil_product", product: "lamp", ref: "{{mapped.payment}}" }],
      });
      await stand.change("PUT", "/products/lamp", { soldThrough: { kind: "relay", relay: "orders" } });
      await stand.call({ id: "a", p: await stand.person() });
      await stand.pass(2_000);
    },
    where: ["log", "problem", "alert"],
    cause: /`ref` resolves to no text or number on this event/,
  },
  {
    name: "person suspended",
    async stage(stand) {
      const person = await stand.person();
      await stand.api("PATCH", `/persons/${person}`, { status: "suspended" });
      await stand.relay({ map: OF_PERSON, actions: [{ type: "grant_credits", amount: 5 }] });
      await stand.call({ id: "a", p: person });
      await stand.pass(2_000);
    },
    where: ["log", "alert"],
    cause: /The event's person is suspended, so no action ran: make them active again/,
  },
  {
    name: "mail settings missing",
    stage: (stand) => mailing(stand, { sends: true }),
    where: ["log", "problem", "alert"],
    cause: /Mail needs a verified sender domain, and this environment has none/,
  },
  {
    name: "sender domain unverified",
    async stage(stand) {
      await stand.api("PUT", "/sender-domain", { domain: "shop.example" });
      await mailing(stand, { sends: true });
    },
    where: ["log", "problem", "alert"],
    cause: /Mail needs a verified sender domain, and this environment has none/,
  },
  {
    name: "changed trigger kind",
    async stage(stand) {
      await stand.relay();
      await stand.change("POST", "/relays/orders/pause", {});
      await stand.call({ id: "a" });
      const definition = { name: "orders", trigger: { kind: "schedule", every: "1d" }, actions: [stand.notice] };
      await stand.change("PUT", "/relays/orders", { definition, version: 1 });
      await stand.change("POST", "/relays/orders/resume", {});
      await stand.pass(2_000);
    },
    where: ["log"],
    cause: /The relay's trigger changed to another kind while the event waited/,
  },
  {
    name: "missed ticks",
    async stage(stand) {
      await stand.save({ name: "hourly", trigger: { kind: "schedule", every: "1h" }, actions: [stand.notice] });
      await stand.server.stop();
      stand.server.nowMs += 5 * HOUR;
      await stand.server.begin();
      await stand.pass(MINUTE);
    },
    alone: true,
    where: ["log", "alert"],
    cause: /ticks( of hourly)? were missed/,
  },
  {
    name: "disk full",
    async stage(stand) {
      await stand.relay();
      stand.server.setDiskSpace("none");
      for (let sent = 0; sent < 5; sent++) await stand.call({ id: `a${sent}`, pad: "x".repeat(30_000) });
      stand.server.setDiskSpace("any");
    },
    alone: true,
    where: ["log"],
    // A process that may not write gets an I/O error instead of the error of a full disk.
    cause: /disk (I\/O error|is full).*event not recorded/,
  },
];
