/** Sends random requests with an app key, signed in or not. Each response is a rejection or a success, and never an internal error. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { ROUTES } from "../../src/interfaces/api/route-list.ts";
import { startApi } from "../kit/api-server.ts";
import { manage, signIn, visitor } from "../kit/app-visitor.ts";

/** Takes the number of runs from the environment, for example `RELAY_FUZZ_RUNS=100000` for a long fuzz. */
const RUNS = Number(process.env.RELAY_FUZZ_RUNS ?? 600);

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.emailAddress(),
  fc.constantFrom("", "\u0000", "__proto__", "constructor", "%", "..", "notes", "mails", "access:beta", "x".repeat(5_000)),
);
const value = fc.oneof({ weight: 3, arbitrary: text }, { weight: 1, arbitrary: fc.jsonValue() }, fc.dictionary(text, text));
const routes = ROUTES.filter(({ who, path }) => (who === "client" || who === "person") && !path.endsWith("/sessions"));

test("no request to the client API causes an internal error", async () => {
  await using api = await startApi({ mode: "local" });
  for (const [name, kind] of [
    ["notes", "private"],
    ["mails", "direct"],
  ])
    await manage(api, "POST", "/collections", {
      name,
      kind,
      fields: { text: { type: "text" }, more: { type: "json" } },
    });
  const person = await signIn(api, "bo@example.com");
  let session = person.token;
  const sent = fc.record({
    route: fc.constantFrom(...routes),
    segments: fc.array(text, { minLength: 2, maxLength: 2 }),
    query: fc.dictionary(fc.constantFrom("limit", "cursor", "q"), text, { maxKeys: 2 }),
    body: fc.oneof(
      {
        weight: 4,
        arbitrary: fc.dictionary(fc.constantFrom("email", "code", "data", "to", "product", "plan"), value),
      },
      { weight: 1, arbitrary: fc.jsonValue() },
    ),
    asStranger: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(sent, async ({ route, segments, query, body, asStranger }) => {
      let next = 0;
      const path = route.path.replace("/client", "").replaceAll(/:\w+/g, () => encodeURIComponent((segments[next++] || "x").toWellFormed()));
      const search = new URLSearchParams(Object.entries(query).map(([name, one]) => [name, one.toWellFormed()]));
      const who = visitor(api, api.keys.app, asStranger ? null : session);
      const reply = route.method === "GET" ? await who.call("GET", `${path}?${search}`) : await who.call(route.method, path, body);
      if (reply.status >= 500) throw new Error(`${route.method} ${path} ${JSON.stringify(body)}: ${api.logged.at(-1)}`);
      if (reply.json?.code === "signed_out" && !asStranger) {
        await api.clock.leap(3_600_000);
        session = (await signIn(api, "bo@example.com")).token;
      }
    }),
    { numRuns: RUNS },
  );
  expect(api.logged.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});
