/** Tests lists that a person filters, with every way to name the person. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startApi } from "../kit/api-server.ts";

const NAMES = ["id", "address", "address in capitals", "token"] as const;
const LISTS = [
  "/emails?person=",
  "/purchases?person=",
  "/subscriptions?person=",
  "/collections/chat/records?owner=",
  "/collections/chat/records?to=",
];

describe("a list filtered by person", async () => {
  const api = await startApi();
  afterAll(() => api[Symbol.asyncDispose]());
  const { E, keys } = api;
  const get = (path: string) => api.call(E + path, { key: keys.dev });
  let id = "";

  beforeAll(async () => {
    const send = async (method: string, path: string, body: object) => {
      const reply = await api.call(E + path, { method, key: keys.dev, body });
      if (reply.status >= 300) throw new Error(`${path}: ${reply.text}`);
      return reply.json;
    };
    id = (await send("POST", "/persons", { email: "ada@example.com" })).person.id;
    await send("PUT", `/persons/${id}/tokens`, { token: "store-account-9" });
    await send("PUT", "/products/book", {});
    await send("PUT", "/plans/team", { default: true });
    await send("POST", "/receipts", { ref: "pay_1", person: id, product: "book" });
    await send("POST", "/receipts", { ref: "pay_2", person: id, plan: "team" });
    await send("POST", "/collections", { name: "chat", kind: "direct", fields: { text: "text" } });
    await send("POST", "/collections/chat/records", { data: { text: "hi" }, owner: id, to: id });
    await api.store.write("app", (tx) =>
      tx.run(
        `INSERT INTO email (id, environment_id, person_id, recipient, sender, kind, subject, text, state, created_at)
         VALUES ('eml_1', ?1, ?2, 'ada@example.com', 'event@shop.example', 'event', 'Hello', 'Hello', 'failed', 1)`,
        api.environments.development.id,
        id,
      ),
    );
  });

  const named = () => ({ id, address: "ada@example.com", "address in capitals": "ADA@Example.com", token: "store-account-9" });
  for (const list of LISTS) {
    test.each(NAMES)(`${list}: finds by the %s`, async (name) => {
      const { status, json } = await get(list + encodeURIComponent(named()[name]));
      expect([status, json.items.length > 0]).toEqual([200, true]);
    });

    test.each(["nobody@example.com", "per_1", ""])(`${list}: %p names no person, and the error says so`, async (name) => {
      const { status, json } = await get(list + name);
      expect([status, json.code]).toEqual([400, "invalid_input"]);
      expect(json.message).toContain("exists in this environment");
    });
  }

  test.each(["email=ada@example.com&status=suspended", "email=ada@example.com&q=bob", "find=ada&access=true", "find=ada&email=ada@example.com"])(
    "/persons?%s is rejected, because one of the filters would have no effect",
    async (query) => {
      const { status, json } = await get(`/persons?${query}`);
      expect([status, json.code, json.problems.length]).toEqual([400, "invalid_input", 1]);
    },
  );

  test("an erased person's id still finds their remaining rows", async () => {
    const gone = await api.call(`${E}/persons/${id}`, { method: "DELETE", key: keys.dev });
    expect(gone.status).toBe(204);
    expect((await get(`/purchases?person=${id}`)).json.items).toHaveLength(2);
    expect((await get("/purchases?person=ada@example.com")).json.code).toBe("invalid_input");
  });
});
