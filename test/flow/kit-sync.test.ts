/** Syncs the files of each selling kit into an empty environment, and prunes them: the source is saved before its followers and removed after them. */
import { describe, expect, test } from "bun:test";
import { KIT_NAMES, kitDefinitions } from "../../src/rules/senders/kit-definitions.ts";
import { KITS } from "../../src/rules/senders/kit-registry.ts";
import { requireSender } from "../../src/rules/senders/registry.ts";
import { type ApiServer, startApi } from "../kit/api-server.ts";

interface Files {
  relays: unknown[];
  catalog?: unknown;
  prune?: boolean;
}

interface Entry {
  kind: string;
  name: string;
  state: string;
}

/** Plans and applies, and returns the entries of the plan and the number of changes. */
async function sync(api: ApiServer, body: Files): Promise<{ entries: Entry[]; changes: number }> {
  const send = (path: string, sent: object) => api.call(`${api.E}/sync/${path}`, { method: "POST", key: api.keys.dev, body: sent });
  const planned = await send("plan", body);
  expect(planned.status).toBe(200);
  const applied = await send("apply", { ...body, plan: planned.json.plan });
  expect([applied.status, applied.json.message]).toEqual([200, undefined]);
  return { entries: planned.json.entries, changes: applied.json.changes };
}

describe.each(KITS.map((kit) => [kit.sender, kit] as const))("the kit of %s", (source, kit) => {
  const { relays, catalog } = kitDefinitions(kit, requireSender(kit.sender), KIT_NAMES);

  const secretFrom = requireSender(kit.sender).secret.from;

  test("syncs into an empty environment in one step, needs only the sender's secret, and is then unchanged", async () => {
    await using api = await startApi();
    const first = await sync(api, { relays: relays.toReversed(), catalog });
    expect(first.entries.map(({ state }) => state)).toEqual(first.entries.map(() => "created"));
    for (const { name } of relays) {
      const { relay } = (await api.call(`${api.E}/relays/${name}`, { key: api.keys.dev })).json;
      const codes = relay.problems.map(({ code }: { code: string }) => code);
      expect([name, codes]).toEqual([name, name === source && secretFrom === "sender" ? ["secret_missing"] : []]);
    }
    const followers = (await api.call(`${api.E}/relays/${source}`, { key: api.keys.dev })).json.relay.followers;
    expect(followers).toEqual(
      relays
        .slice(1)
        .map(({ name }) => name)
        .sort(),
    );
    expect((await sync(api, { relays, catalog })).changes).toBe(0);
  });

  test("is pruned completely, although the source is followed", async () => {
    await using api = await startApi();
    await sync(api, { relays, catalog });
    const gone = await sync(api, { relays: [], catalog: {}, prune: true });
    expect(gone.changes).toBeGreaterThanOrEqual(relays.length);
    expect((await api.call(`${api.E}/relays`, { key: api.keys.dev })).json.items).toEqual([]);
  });
});

describe("GET /api/kits", () => {
  test("lists every kit, and shows one with the seller's names as the command writes it", async () => {
    await using api = await startApi();
    const list = (await api.call("/api/kits?limit=3", { key: api.keys.dev })).json;
    expect(list.items.map(({ sender }: { sender: string }) => sender)).toEqual(KITS.slice(0, 3).map(({ sender }) => sender));
    const rest = (await api.call(`/api/kits?cursor=${list.next}`, { key: api.keys.dev })).json;
    expect(rest.items).toHaveLength(KITS.length - 3);
    for (const kit of KITS) {
      const { json } = await api.call(`/api/kits/${kit.sender}?product=e-book&plan=small&plan2=large`, { key: api.keys.dev });
      const wanted = kitDefinitions(kit, requireSender(kit.sender), { product: "e-book", plan: "small", plan2: "large" });
      expect(json.kit.relays.map(({ definition }: { definition: object }) => definition)).toEqual(wanted.relays);
      expect([json.kit.catalog, json.kit.docs]).toEqual([wanted.catalog, `/docs/sell-with-${kit.sender}`]);
    }
  });

  test.each([
    ["an unknown provider", "github", "", 404, "There is no kit for this provider"],
    ["a name that cannot be part of a relay's name", "stripe", "?plan=Small", 400, "The name of the first plan (`plan`)"],
    ["a name that is too long", "stripe", `?product=${"p".repeat(41)}`, 400, "product"],
    ["an unknown field", "stripe", "?plans=a", 400, "plans"],
  ])("refuses %s", async (_rule, sender, query, status, message) => {
    await using api = await startApi();
    const { status: had, json } = await api.call(`/api/kits/${sender}${query}`, { key: api.keys.dev });
    expect([had, json.message]).toEqual([status, expect.stringContaining(message)]);
  });
});
