/** Staged failures of requests: those that verify nowhere, and those that verify and become no event. */
import { toIso } from "../../src/base/clock.ts";
import { HOOK_SECRET, signedCall } from "./relay-definition.ts";
import { DAY, HOUR, MINUTE, PRIVATE, type StagedFailure, type Stand, TIMED } from "./staged-failure.ts";

const OTHER_SECRET = "anotherSecretOfTwentyFour1";
const URL_SIGNED = { scheme: "signature", header: "x-signature", signedPayload: "{url}{body}", encoding: "hex" };
const BODY = JSON.stringify({ id: "a", note: PRIVATE });

/** Sends a request six times over 24 minutes, as a sender's retries do. */
async function often(stand: Stand, once: () => Promise<unknown>): Promise<void> {
  for (let sent = 0; sent < 6; sent++) {
    await once();
    await stand.pass(4 * MINUTE);
  }
}

export const STAGED_CALLS: readonly StagedFailure[] = [
  {
    name: "wrong secret",
    async stage(stand) {
      await stand.relay();
      await often(stand, () => stand.call({ id: "a", note: PRIVATE }, OTHER_SECRET));
    },
    where: ["log", "problem", "alert"],
    cause: /the signature does not match; the secret or the recipe differs from the sender's/,
    hidden: PRIVATE,
  },
  {
    name: "header typo",
    async stage(stand) {
      await stand.relay({ verify: { scheme: "signature", header: "x-signture", signedPayload: "{body}", encoding: "hex" } });
      await often(stand, () => stand.call({ id: "a", note: PRIVATE }));
    },
    where: ["log", "problem", "alert"],
    cause: /header x-signture is missing.*`x-signature`/,
    hidden: PRIVATE,
  },
  {
    name: "signed text wrong",
    async stage(stand) {
      await stand.relay({ verify: TIMED });
      await often(stand, () => stand.callSigned(BODY, { seconds: stand.seconds, body: BODY }));
    },
    where: ["log", "problem", "alert"],
    cause: /it verifies with .*signedPayload `\{body\}`/,
    hidden: PRIVATE,
  },
  {
    name: "clock off",
    async stage(stand) {
      await stand.relay({ verify: TIMED });
      await often(stand, () => {
        const seconds = stand.seconds - 912;
        return stand.callSigned(`${seconds}.${BODY}`, { seconds, body: BODY });
      });
    },
    where: ["log", "problem", "alert"],
    cause:
      /the timestamp is 912 seconds old, and at most 300 are allowed; everything else verifies, so the sender's clock or this server's clock is off/,
    hidden: PRIVATE,
  },
  {
    name: "rotated at the provider",
    async stage(stand) {
      await stand.relay();
      await stand.call({ id: "first" });
      await stand.pass(4 * MINUTE);
      await often(stand, () => stand.call({ id: "a", note: PRIVATE }, OTHER_SECRET));
    },
    where: ["log", "problem", "alert"],
    cause: ({ startMs }) =>
      new RegExp(`Requests verified until ${toIso(startMs)}, and nothing was changed here since then: the sender may have a new secret`),
    hidden: PRIVATE,
  },
  {
    name: "wrong base URL",
    async stage(stand) {
      await stand.relay({ verify: URL_SIGNED });
      await often(stand, () => stand.callSigned(`${stand.server.url}/hooks/${stand.app}/orders${BODY}`, { body: BODY }));
    },
    where: ["log", "problem", "alert"],
    cause: /it verifies with the receiver URL with the host of the header host, with http instead of https/,
    hidden: PRIVATE,
  },
  {
    name: "appended query",
    async stage(stand) {
      await stand.relay({ verify: URL_SIGNED });
      const url = `https://relay.example.test/hooks/${stand.app}/orders`;
      await often(stand, () => stand.callSigned(`${url}${BODY}`, { body: BODY, search: "?utm_source=x" }));
    },
    where: ["log", "problem", "alert"],
    cause: /the request URL has text after the receiver URL, and the sender signs the URL; everything else verifies/,
    hidden: PRIVATE,
  },
  {
    name: "other environment's secret",
    async stage(stand) {
      await stand.relay();
      await often(stand, () => stand.call({ id: "a", note: PRIVATE }, OTHER_SECRET));
      await stand.api("POST", "/relays", { definition: { ...ORDERS_ELSEWHERE }, secret: OTHER_SECRET }, "production");
      await stand.pass(MINUTE);
      await often(stand, () => stand.call({ id: "a", note: PRIVATE }, OTHER_SECRET));
    },
    where: ["log"],
    cause: /it verifies with the secret of the relay with this name in production/,
    hidden: PRIVATE,
  },
  {
    name: "missing secret",
    async stage(stand) {
      await stand.relay({ verify: { ...TIMED, algorithm: "ed25519", encoding: "base64" } }, null);
      await often(stand, () => stand.callSigned(BODY, { seconds: stand.seconds, body: BODY }));
    },
    where: ["answer", "log", "problem", "alert"],
    cause: /the relay has no secret or key yet|the sender's public key is not stored/,
    hidden: PRIVATE,
  },
  {
    name: "URL typo",
    async stage(stand) {
      await stand.relay();
      await stand.call({ id: "a" }, HOOK_SECRET, "ordes");
      await stand.pass(2_000);
    },
    where: ["log"],
    cause: /a request named no receiver.*did the sender mean orders\?|did the sender mean orders\?.*a request named no receiver/,
  },
  {
    name: "deleted relay",
    async stage(stand) {
      await stand.relay();
      await stand.change("DELETE", "/relays/orders");
      await stand.call({ id: "a" });
      await stand.pass(2_000);
    },
    where: ["log"],
    cause: ({ startMs }) => new RegExp(`the relay was deleted at ${toIso(startMs)}`),
  },
  {
    name: "form for JSON",
    async stage(stand) {
      await stand.relay();
      await stand.call(`id=a&note=${PRIVATE}`);
      await stand.pass(2_000);
    },
    where: ["log"],
    cause: /The body is not JSON/,
  },
  {
    name: "too large",
    async stage(stand) {
      await stand.relay();
      await stand.call(JSON.stringify({ id: "a", pad: "x".repeat(300_000) }));
      await stand.pass(2_000);
    },
    where: ["log"],
    cause: /the body is larger than 256 KB/,
  },
  {
    name: "reused event id",
    async stage(stand) {
      await stand.relay({ map: { event_id: "account", event_type: "type", amount: "amount" } });
      await stand.call({ account: "acme", amount: 1 });
      await stand.call({ account: "acme", amount: 2 });
      await stand.pass(2_000);
    },
    where: ["log"],
    cause: /is event_id really the event's own id\?/,
  },
  {
    name: "`when` typo",
    async stage(stand) {
      await stand.relay({ when: { event_type: "order.piad" } });
      await stand.call({ id: "a", type: "order.paid" });
      await stand.pass(2_000);
    },
    where: ["log"],
    cause: /when\.event_type must be "order\.piad" and the request has "order\.paid"/,
  },
  {
    name: "everything ignored for a day",
    async stage(stand) {
      await stand.relay({ when: { event_type: "order.piad" } });
      for (let sent = 0; sent < 5; sent++) {
        await stand.call({ id: `a${sent}`, type: "order.paid" });
        await stand.leap(7 * HOUR);
      }
    },
    where: ["problem", "alert", "log"],
    cause: /orders has ignored every request since .*when\.event_type must be "order\.piad" and the request has "order\.paid"/,
  },
  {
    name: "capped",
    async stage(stand) {
      await stand.relay();
      for (let sent = 0; sent < 150; sent++) await stand.call({ id: `a${sent}` });
      await stand.pass(2_000);
    },
    where: ["log", "problem", "alert"],
    cause: /more than 120 (verified events in|a) minute/,
  },
  {
    name: "sender stopped",
    async stage(stand) {
      await stand.relay();
      for (let sent = 0; sent < 10; sent++) {
        await stand.call({ id: `a${sent}` });
        await stand.leap(HOUR);
      }
      await stand.leap(3 * DAY);
    },
    where: ["problem", "alert", "log"],
    cause: /orders received its last event at .*[Aa]sk the sender whether it still sends/,
  },
  {
    name: "never called",
    async stage(stand) {
      await stand.relay();
      await stand.leap(25 * HOUR);
    },
    where: ["problem", "alert", "log"],
    cause:
      /orders was made at .* and it received no request yet: give its sender the URL https:\/\/relay\.example\.test\/hooks\/never_called\/orders/,
  },
  {
    name: "unnamed proxy",
    async stage(stand) {
      await stand.relay();
      for (let sent = 0; sent < 40; sent++) {
        const { headers, body } = signedCall({ id: `a${sent}` });
        await stand.hook("orders", { headers: { ...headers, "x-forwarded-for": `203.0.113.${sent}` }, body });
        await stand.pass(5_000);
      }
      await stand.pass(10 * MINUTE);
    },
    alone: true,
    where: ["problem", "log"],
    cause: /Requests arrive through the proxy 127\.0\.0\.1, which is not trusted, so all callers behind it share one .*--trusted-proxy 127\.0\.0\.1/,
  },
  {
    name: "unsigned event that may not act",
    async stage(stand) {
      const verify = { scheme: "shared_token", header: "x-token" };
      await stand.relay({ verify });
      const acting = [{ type: "grant_credits", amount: 5 }];
      const definition = { name: "orders", trigger: { kind: "receiver", verify, map: { event_id: "id", person_id: "p" } }, actions: acting };
      await stand.server.stop();
      stand.server.alter("UPDATE relay SET definition = ?1", JSON.stringify(definition));
      await stand.server.begin();
      const send = () => stand.hook("orders", { headers: { "x-token": HOOK_SECRET, "content-type": "application/json" }, body: BODY });
      await often(stand, send);
    },
    alone: true,
    where: ["problem", "log"],
    cause: /unsigned-event rule|The sender does not sign the event, and the relay acts on people/,
    hidden: PRIVATE,
  },
];

const ORDERS_ELSEWHERE = {
  name: "orders",
  trigger: { kind: "receiver", verify: { ...TIMED }, map: { event_id: "id" } },
  actions: [{ type: "write_record", collection: "orders", data: {} }],
};
