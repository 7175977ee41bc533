/** Tests every filter of every list with typical mistakes. A mistake must be an error and never an empty list. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startApi } from "../kit/api-server.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";

/** Describes a path of the OpenAPI document. */
interface Path {
  get?: { parameters: { in: string; name: string }[] };
}

/**
 * Classifies filters. `word` is one of a fixed set. `thing` names an item that exists or existed in the environment. `time` is a time. `exact` is a
 * text that must match exactly. `part` is a searched text, where an empty one matches everything. `mapped` is a name and the beginning of its value.
 */
type Kind = "word" | "thing" | "time" | "exact" | "part" | "mapped";

const OF_EVENTS = {
  relay: "thing",
  trigger: "word",
  reason: "word",
  person: "thing",
  since: "time",
  until: "time",
  q: "part",
  mapped: "mapped",
} as const;

const FILTERS: Readonly<Record<string, Readonly<Record<string, Kind>>>> = {
  "/relays": { state: "word", sort: "word", search: "part" },
  "/events": { ...OF_EVENTS, state: "word" },
  "/events/counts": OF_EVENTS,
  "/events/histogram": { ...OF_EVENTS, state: "word", every: "word" },
  "/persons": { q: "part", email: "exact", find: "exact", status: "word", access: "word" },
  "/grants": { entitlement: "thing" },
  "/emails": { person: "thing", kind: "word", state: "word" },
  "/collections/notes/records": { owner: "thing", to: "thing", q: "part" },
  "/purchases": { ref: "exact", person: "thing", kind: "word" },
  "/subscriptions": { person: "thing", status: "word" },
  "/audit": { kind: "word", target: "exact", actor: "exact", action: "word" },
  "/problems": { all: "word" },
  "/alerts": { open: "word" },
  "/calls": { relay: "exact", outcome: "word", code: "word", since: "time" },
  "/calls/counts": { relay: "exact", since: "time" },
};

const HUGE = "x".repeat(3_000);

describe("a list's filter", async () => {
  const api = await startApi();
  afterAll(() => api[Symbol.asyncDispose]());
  const get = (path: string) => api.call(api.E + path, { key: api.keys.dev });
  const send = async (method: string, path: string, body?: object) => {
    const reply = await api.call(api.E + path, { method, key: api.keys.dev, ...(body === undefined ? {} : { body }) });
    if (reply.status >= 300) throw new Error(`${path}: ${reply.text}`);
    return reply.json;
  };

  beforeAll(async () => {
    await send("POST", "/collections", { name: "notes", kind: "shared", fields: { text: "text" } });
    for (const name of ["orders", "gone"]) await send("POST", "/relays", { definition: receiverDefinition({ name }) });
    await send("DELETE", "/relays/gone");
  });

  test("every list of the API document is in this table", async () => {
    const { paths } = (await api.call("/openapi.json")).json;
    const below = "/api/apps/{appId}/{environment}";
    const inDocument = Object.entries<Path>(paths).flatMap(([path, { get: route }]) => {
      const names = (route?.parameters ?? []).flatMap((one) => (one.in === "query" ? [one.name] : []));
      const filters = names.filter((name) => name !== "limit" && name !== "cursor");
      const isList = names.includes("cursor") || /\/(counts|histogram)$/.test(path);
      return isList && path.startsWith(below) && filters.length > 0 ? [[path.slice(below.length), filters.sort()]] : [];
    });
    const stand = Object.entries(FILTERS).map(([path, filters]) => [path.replace("/notes/", "/{name}/"), Object.keys(filters).sort()]);
    expect(Object.fromEntries(inDocument)).toEqual(Object.fromEntries(stand));
  });

  const rows = Object.entries(FILTERS).flatMap(([path, filters]) =>
    Object.entries(filters).map(([name, kind]) => [`${path}?${name}`, kind] as const),
  );
  test.each(rows)("%s is %s: unknown, empty, oversized and repeated values", async (filter, kind) => {
    const name = filter.split("?")[1] ?? "";
    const ask = async (value: string) => {
      const { status, json } = await get(`${filter}=${encodeURIComponent(value)}`);
      if (status === 400) expect([json.code, json.message.length < 900]).toEqual(["invalid_input", true]);
      if (status === 400) expect(json.message).toContain(name);
      return status;
    };
    const isText = kind === "exact" || kind === "part";
    expect({ unknown: await ask("nope"), empty: await ask(""), huge: await ask(HUGE) }).toEqual({
      unknown: isText ? 200 : 400,
      empty: kind === "part" ? 200 : 400,
      huge: 400,
    });
    expect((await get(`${filter}=a&${name}=b`)).status).toBe(400);
  });

  test.each(["0", "201", "-1", "", " 5", "+5", "1e1", "0x5", "5.0", "five"])("limit=%p is not a number from 1 to 200", async (limit) => {
    const { status, json } = await get(`/events?limit=${encodeURIComponent(limit)}`);
    expect([status, json.message]).toEqual([400, "limit is not valid: use an integer from 1 to 200."]);
  });

  test.each(["/events", "/events/counts", "/events/histogram"])("%s: knows an existing relay and a deleted one", async (list) => {
    for (const name of ["orders", "gone"]) expect((await get(`${list}?relay=${name}`)).status).toBe(200);
  });

  test.each([
    ["/events?relay=ordres", 'relay is not valid: no relay "ordres" is here or was: did you mean orders?'],
    ["/events?relay=nope", 'relay is not valid: no relay "nope" is here or was: relay relays list shows which are.'],
    ["/events?reason=person_not_foudn", 'reason is not valid: no event fails with "person_not_foudn": did you mean person_not_found?'],
    ["/audit?action=relay.update", 'action is not valid: the audit log has no action "relay.update": did you mean relay.updated?'],
    ["/grants?entitlement=lmap", /^`entitlement` names lmap, which is not an access slug, product or plan in this environment/],
  ])("%s suggests the probable value", async (path, message) => {
    expect((await get(path)).json.message).toMatch(message);
  });

  test("a bulk replay of an unknown relay is rejected instead of matching no event", async () => {
    const { status, json } = await api.call(`${api.E}/bulk-replays/plan`, {
      method: "POST",
      key: api.keys.dev,
      body: { state: "dead", relay: "ordres" },
    });
    expect([status, json.message]).toEqual([400, 'relay is not valid: no relay "ordres" is here or was: did you mean orders?']);
  });
});
