/**
 * A viewer reads everything, and sees no value of a payload: each stored request contains the mark, and no response of any route does. An
 * owner finds it in the same responses.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ROUTES } from "../../src/interfaces/api/route-list.ts";
import { HIDDEN_TEXT } from "../../src/interfaces/http/payload-mask.ts";
import { readWhole } from "../kit/change-stream.ts";
import { addMember, makeRole } from "../kit/member.ts";
import { receiverDefinition, signedCall, writeOrder } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";

const MARK = "zebra-7731";
const ROOT = `/api/apps/${APP}/development`;

let running: RunningService;
const tokens: Record<string, string> = {};
const ids: Record<string, string> = {};

beforeAll(async () => {
  running = await startRunningService({ environments: ["development", "production"] });
  const make = async (method: string, path: string, body?: unknown) => {
    const answer = await running.api(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
    // biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
    return answer.body as any;
  };
  await make("POST", "/collections", { name: "orders", kind: "shared", fields: { order: { type: "text" }, amount: { type: "text" } } });
  const [first] = [receiverDefinition({ name: "orders", actions: [writeOrder] })];
  await make("POST", "/relays", { definition: first });
  await make("PUT", "/relays/orders/secret", { value: "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS" });
  await running.hook("orders", signedCall({ id: "1", type: "sale", amount: "5", note: MARK }));
  await running.hook("orders", signedCall({ id: "2", type: "sale", amount: { deep: [MARK] } }));
  await running.hook("orders", signedCall({ id: "3", type: MARK, amount: MARK }, "anotherSecretOfTwentyFour1"));
  await running.drain();
  await running.clock.advance(2_000);
  ids["/events"] = (await make("GET", "/events")).items.at(-1).id;
  const body = signedCall({ id: "4", type: "sale", amount: "7", note: MARK }).body;
  await make("PUT", "/relays/orders/cases/one", { body });
  ids["/calls"] = (await make("GET", "/calls")).items[0].id;
  const { capture } = await make("POST", "/captures");
  ids["/captures"] = capture.id;
  await fetch(capture.url.replace(running.service.baseUrl, running.service.url), {
    method: "POST",
    body: JSON.stringify({ note: MARK }),
    headers: { "x-note": MARK },
  });
  await addPerson("owner", false);
  await addPerson("viewer", false);
  await addPerson("allowed", true);
});

afterAll(async () => {
  await running[Symbol.asyncDispose]();
});

async function addPerson(name: string, payloads: boolean): Promise<void> {
  const memberships = [{ ...makeRole(name === "owner" ? "owner" : "viewer"), payloads }];
  const { token } = await running.service.store.write("dashboard", (tx) => addMember(tx, name, { nowMs: running.clock.now(), memberships }));
  tokens[name] = token;
}

async function ask(name: string, method: string, path: string, body?: unknown) {
  const headers = { cookie: `__Host-relay_session=${tokens[name]}`, origin: running.service.baseUrl, "content-type": "application/json" };
  const answer = await fetch(running.service.url + ROOT + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  return { status: answer.status, text: await readWhole(answer) };
}

const PREFIX = "/api/apps/:appId/:environment";
const READS = ROUTES.filter(({ who, method }) => who === "environment" && method === "GET").map(({ path }) => path.slice(PREFIX.length));

/** Fills a path with ids. The name of the only relay is also its id. */
function fill(path: string): string {
  return path.replace(/^(\/\w+)\/:\w+/, (_, list: string) => `${list}/${ids[list] ?? "orders"}`).replaceAll(/:\w+/g, "one");
}

async function readAll(name: string): Promise<string[]> {
  const found: string[] = [];
  for (const path of READS) {
    const search = path === "/find" ? "?q=orders" : "";
    const { status, text } = await ask(name, "GET", fill(path) + search);
    if (text.includes(MARK)) found.push(path);
    if (!path.includes(":")) expect(`${path} ${status}`).toMatch(/ (200|400|403)$/);
  }
  const posts: [string, unknown][] = [
    ["/relays/orders/explain", { event: ids["/events"] }],
    ["/relays/orders/cases/run", {}],
    ["/mcp", { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "read_event", arguments: { id: ids["/events"] } } }],
    ["/mcp", { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "list_cases", arguments: { name: "orders" } } }],
  ];
  for (const [path, body] of posts) {
    const { status, text } = await ask(name, "POST", path, body);
    expect(`${path} ${status}`).toBe(`${path} 200`);
    if (text.includes(MARK)) found.push(`POST ${path}`);
  }
  return found;
}

describe("the values of payloads", () => {
  test("an owner and a member who is allowed to see them find them", async () => {
    const shown = await readAll("owner");
    expect(shown).toEqual(expect.arrayContaining(["/events/:id", "/relays/:name/cases", "/calls/:id", "/collections/:name/records", "POST /mcp"]));
    expect(shown).toContain("/captures/:id");
    expect(await readAll("allowed")).toEqual(shown.filter((path) => path !== "/captures/:id"));
  });

  test("a viewer finds none in any response, and the connector gives none", async () => {
    expect(await readAll("viewer")).toEqual([]);
  });

  test("names and types stay, and lengths do not show", async () => {
    const { event } = JSON.parse((await ask("viewer", "GET", `/events/${ids["/events"]}`)).text);
    expect(JSON.stringify(event.payload)).toContain(`"note":"${HIDDEN_TEXT}"`);
    expect(JSON.stringify(event.payload)).not.toContain(MARK);
  });
});
