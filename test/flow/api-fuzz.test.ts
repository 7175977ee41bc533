/** Sends random requests to every route. Each response is a JSON rejection or success, and never an internal error. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { ShapeNode } from "../../src/base/shape.ts";
import { ROUTES } from "../../src/interfaces/api/route-list.ts";
import { startApi } from "../kit/api-server.ts";

/** Takes the number of runs from the environment, for example `RELAY_FUZZ_RUNS=100000` for a long fuzz. */
const RUNS = Number(process.env.RELAY_FUZZ_RUNS ?? 1_500);

const oddText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom("", "\u0000", "__proto__", "constructor", "toString", "'; DROP TABLE record; --", "%", "..", "a".repeat(5_000), "\ud800"),
);
const oddValue = fc.oneof(
  { weight: 3, arbitrary: fc.jsonValue() },
  { weight: 2, arbitrary: oddText },
  fc.constantFrom(null, true, -1, 0, 1, 1e308, -0, 9_007_199_254_740_991, 0.5, [], {}, [[]], {
    kind: "relay",
  }),
);
const routeArbitrary = fc.constantFrom(...ROUTES.filter(({ who }) => who !== "owner"));

/** Builds odd values for the route's own fields, so that requests pass the check for unknown fields. */
function bodyFor(schema: ShapeNode | null): fc.Arbitrary<unknown> {
  const names = Object.keys(schema?.properties ?? {});
  const near = fc.record(Object.fromEntries(names.map((name) => [name, likely(schema?.properties?.[name])])), { requiredKeys: [] });
  return fc.oneof({ weight: 5, arbitrary: near }, { weight: 1, arbitrary: oddValue });
}

function likely(schema: ShapeNode | undefined): fc.Arbitrary<unknown> {
  const fit =
    schema?.type === "string"
      ? fc.oneof(oddText, fc.emailAddress(), fc.constantFrom("notes", "book", "access:beta", "2026-02-30T00:00:00Z"))
      : schema?.type === "integer"
        ? fc.integer()
        : schema?.type === "boolean"
          ? fc.boolean()
          : fc.dictionary(oddText, oddValue, { maxKeys: 4 });
  return fc.oneof({ weight: 4, arbitrary: fit }, { weight: 1, arbitrary: oddValue });
}

test("no request causes an internal error", async () => {
  await using api = await startApi();
  const body = { name: "notes", kind: "shared", fields: { text: { type: "text" }, more: { type: "json" } } };
  await api.call(`${api.E}/collections`, { method: "POST", key: api.keys.dev, body });
  const call = fc.record({
    route: routeArbitrary,
    segments: fc.array(fc.oneof(oddText, fc.constantFrom("notes", "book", "beta")), {
      minLength: 3,
      maxLength: 3,
    }),
    query: fc.dictionary(fc.oneof(fc.constantFrom("limit", "cursor", "q", "since", "state", "force", "version"), oddText), oddText, { maxKeys: 2 }),
    asOwner: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(
      call.chain((made) => fc.tuple(fc.constant(made), bodyFor(made.route.body as ShapeNode | null))),
      async ([made, sent]) => {
        const { route, segments, query, asOwner } = made;
        let next = 0;
        const path = route.path
          .replace(":appId", "shop")
          .replace(":environment", "development")
          .replaceAll(/:\w+/g, () => encodeURIComponent((segments[next++] ?? "x").toWellFormed()));
        const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name.toWellFormed(), value.toWellFormed()]));
        const who = asOwner ? { session: true } : { key: api.keys.dev };
        const reply = await api.call(`${path}?${made.route.method === "GET" ? search : ""}`, {
          ...who,
          method: route.method,
          ...(route.method === "GET" ? {} : { body: sent ?? null }),
        });
        if (reply.status >= 500) throw new Error(`${route.method} ${path} ${JSON.stringify(sent)}: ${api.logged.at(-1)}`);
        expect(reply.status).toBeLessThan(500);
      },
    ),
    { numRuns: RUNS },
  );
});
