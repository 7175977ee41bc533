/** A customer with a history: one payment that was fulfilled, two that gave nothing, and access, credits and a record addressed to her. */
import { sendSigned } from "./browser-sender.ts";
import type { RunningService } from "./running-service.ts";

export const CAROL = "carol@example.com";
const MAP = { event_id: "id", event_type: "type", person_email: "email", order: "order" };
const VERIFY = { scheme: "hooks" };

/** Returns her id. The relay `broken` sells a product that does not exist. */
export async function stageCarol(running: RunningService): Promise<string> {
  // biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
  const make = async (method: string, path: string, body?: unknown): Promise<any> => {
    const answer = await running.api(method, path, body, "local");
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const relay = async (name: string, actions: unknown[], map: object = MAP): Promise<string> => {
    const definition = { name, trigger: { kind: "receiver", verify: VERIFY, map }, actions };
    return (await make("POST", "/relays", { definition })).receiverSecret;
  };
  const paid = (id: string, order: string, more: object = {}): string =>
    JSON.stringify({ id, type: "checkout.session.completed", email: CAROL, order, ...more });
  await make("PUT", "/access", { items: [{ slug: "beta", title: "Beta" }] });
  await make("POST", "/collections", {
    name: "orders",
    kind: "shared",
    fields: { order: { type: "text" }, amount: { type: "number" }, note: { type: "json" } },
  });
  await make("POST", "/collections", { name: "notices", kind: "addressed", fields: { text: { type: "text" } } });
  const sale = { type: "fulfil_product", product: "lamp", ref: "{{mapped.order}}" };
  const notice = { type: "write_record", collection: "notices", to: "person", data: { text: "Thank you for {{mapped.order}}" } };
  const shop = await relay("shop", [sale, notice]);
  await make("PUT", "/products/lamp", { title: "Lamp", credits: 500, soldThrough: { kind: "relay", relay: "shop" } });
  await make("PUT", "/plans/free", { title: "Free" });
  await make("PUT", "/plans/pro", { title: "Pro" });
  const broken = await relay("broken", [{ ...sale, product: "chair" }]);
  const lost = await relay("by-token", [{ type: "grant_credits", amount: 5 }], {
    event_id: "id",
    event_type: "type",
    person_token: "token",
    email: "email",
  });
  await sendSigned(running, "shop", shop, "one", paid("one", "cs_live_be07"));
  await running.drain();
  const id = (await make("GET", `/persons?email=${CAROL}`)).items[0].id;
  await sendSigned(running, "broken", broken, "two", paid("two", "cs_live_be08"));
  await sendSigned(running, "by-token", lost, "three", paid("three", "cs_live_be09", { token: "unknown-token" }));
  await running.drain();
  await make("POST", `/persons/${id}/credits`, { amount: -120, reason: "used for an export", key: "use-1" });
  await make("POST", "/receipts", { ref: "sub_1", person: id, plan: "pro" });
  await make("PATCH", `/persons/${id}`, { attributes: { plan_note: "pays by invoice", seats: 12 } });
  return id;
}
