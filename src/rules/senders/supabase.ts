/** Supabase, by its page on database webhooks. */
import type { Sender } from "./sender.ts";

export const supabase: Sender = {
  name: "supabase",
  title: "Supabase",
  summary: "Tells of rows of a table that were inserted, changed and deleted (database webhooks).",
  verify: { scheme: "shared_token" },
  map: { event_type: "type", table: "table", row: "record.id", status: "record.status" },
  when: { event_type: "INSERT", table: "orders" },
  personEmail: null,
  secret: {
    from: "relay",
    where: "The webhook’s HTTP Headers: x-webhook-token with the secret that is made here.",
  },
  register:
    "Integrations, Database Webhooks, Create a new hook: the table, the events, HTTP Request with method POST.",
  example: {
    json: {
      type: "INSERT",
      table: "orders",
      schema: "public",
      record: {
        id: 4821,
        status: "paid",
        total_cents: 4200,
        currency: "eur",
        email: "ada@example.com",
        created_at: "2026-01-15T12:00:00.000Z",
      },
      old_record: null,
    },
  },
  eventTypes: [
    { type: "INSERT", meaning: "A row is new." },
    { type: "UPDATE", meaning: "A row was changed; `old_record` is what it was." },
    { type: "DELETE", meaning: "A row was deleted; it is in `old_record`, and `record` is null." },
  ],
  pitfalls: [
    "Nothing is signed: the token is sent as it is, so the relay may write records and call URLs; more needs `trustUnsignedEvents`.",
    "The database sends once and never again: what is not taken is lost.",
    'No id of the event is in the body; a table whose rows are only inserted may take "event_id": "record.id".',
    "Auth hooks are another thing: they wait for an answer that decides, which a relay does not give.",
  ],
  docs: "https://supabase.com/docs/guides/database/webhooks",
};
