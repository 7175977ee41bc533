/** The warning of a private URL, on a server whose operator allows private hosts or ranges. */
import { expect, test } from "bun:test";
import { startApi } from "../kit/api-server.ts";

const definition = (url: string) => ({
  name: "notify",
  trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id" } },
  actions: [{ type: "call_url", url }],
});

test.each([
  ["https://billing/x", [], true],
  ["https://billing/x", ["other"], true],
  ["https://billing/x", ["Billing"], false],
  ["https://api.internal/x", ["10.0.0.0/8"], false],
  ["http://localhost:3000/x", ["localhost"], true],
])("%s with --allow-private %j: warning %j", async (url, allowPrivate, isWarned) => {
  await using api = await startApi({ allowPrivate });
  const codes = (answer: { json: { warnings: { code: string }[] } }) => answer.json.warnings.map(({ code }) => code);
  const sent = { method: "POST", key: api.keys.dev, body: { definition: definition(url) } } as const;
  const checked = await api.call(`${api.E}/relays/validate`, sent);
  expect(codes(checked).includes("url_local")).toBe(isWarned);
  const saved = await api.call(`${api.E}/relays`, sent);
  expect([saved.status, codes(saved).includes("url_local")]).toEqual([201, isWarned]);
});
