/** Gumroad, by its page on Ping. */
import type { Sender } from "./sender.ts";

export const gumroad: Sender = {
  name: "gumroad",
  title: "Gumroad",
  summary: "Tells of each sale (Ping).",
  verify: { scheme: "shared_token", query: "token" },
  map: {
    event_id: "sale_id",
    product: "product_permalink",
    name: "product_name",
    price: "price",
    email: "email",
    test: "test",
  },
  when: {},
  personEmail: "email",
  secret: {
    from: "relay",
    where: "It stands in the URL: the receiver URL, then ?token= and the one made here.",
  },
  register: "Settings, Advanced: Ping endpoint.",
  example: {
    form: {
      seller_id: "tvc5SPgRlUm-9HpOWpzpcw==",
      product_id: "7OKvnDJrkKPODkNyrA5c-g==",
      product_name: "Premium",
      permalink: "premium",
      product_permalink: "https://example.gumroad.com/l/premium",
      short_product_id: "premium",
      email: "ada@example.com",
      price: "4200",
      currency: "eur",
      quantity: "1",
      order_number: "524459935",
      sale_id: "FO8TXN-dbxYaBdahG97Y-Q==",
      sale_timestamp: "2026-01-15T12:00:00Z",
      refunded: "false",
      test: "true",
    },
  },
  eventTypes: [{ type: "sale", meaning: "Something was bought: what Ping tells of." }],
  pitfalls: [
    "Nothing is signed: the relay may write records and call URLs; more needs `trustUnsignedEvents`, and who knows the URL can then make a sale up.",
    "An account has one Ping endpoint: each sale of every product comes to it; tell them apart by `product_permalink`.",
    "A test ping has `test` true: `when` may let through only what has another.",
  ],
  docs: "https://gumroad.com/ping",
};
