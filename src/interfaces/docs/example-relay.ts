/** The relay of the API's examples, which is valid in every small shop. */
import type { JsonObject } from "../../base/json.ts";

export const EXAMPLE_RELAY: JsonObject = {
  name: "orders",
  trigger: {
    kind: "receiver",
    verify: { scheme: "hooks" },
    map: { event_id: "id", event_type: "type", person_email: "email" },
    when: { event_type: "order.paid" },
  },
  actions: [
    { type: "write_record", collection: "orders", to: "person", data: { order: "{{mapped.event_id}}" } },
    { type: "call_url", url: "https://example.com/orders" },
  ],
};
