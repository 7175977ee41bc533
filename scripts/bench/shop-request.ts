/** The requests of the dashboard's pages on a shop's store. */
import { DAY_MS, HOUR_MS } from "../../src/base/limit.ts";
import { BUSY, rowId } from "./shop-fill.ts";

/** A person with an ordinary timeline, also in a small shop. */
const PERSON = rowId("per", 77);

/** Lists each page of the dashboard with the requests of its first screen and of its filters. `event` is the id of a dead event. */
export function listRequests(event: string): [page: string, path: string][] {
  const since = (ms: number): string => `since=${new Date(Date.now() - ms).toISOString()}`;
  const filters = [
    "",
    ...["queued", "running", "done", "failed", "dead"].map((state) => `state=${state}`),
    "relay=orders-paid",
    "relay=signups&state=dead",
    "relay=refunds&state=queued",
    "relay=nightly",
    "trigger=receiver",
    "trigger=schedule",
    "trigger=data_change&state=failed",
    `person=${BUSY}`,
    `person=${BUSY}&state=dead`,
    `person=${PERSON}`,
    "q=cs_live_0000beef",
    "q=nowhere",
    "q=order",
    "mapped=order:cs_live_00",
    "mapped=order:nowhere",
    since(HOUR_MS),
    since(DAY_MS),
    `${since(20 * DAY_MS)}&until=${new Date(Date.now() - 15 * DAY_MS).toISOString()}`,
    `${since(7 * DAY_MS)}&relay=signups&trigger=receiver&state=done`,
  ];
  const events = (path: string): [string, string][] =>
    filters.map((filter) => ["Events", `/events${path}?${filter}`]);
  const ranges: [string, string][] = [HOUR_MS, DAY_MS, 7 * DAY_MS, 30 * DAY_MS].map((ms) => [
    "Home",
    `/events/histogram?${since(ms)}`,
  ]);
  const of = (page: string, ...paths: string[]): [string, string][] => paths.map((path) => [page, path]);
  return [
    ...of("Home", "/overview", "/api/overview"),
    ...ranges,
    ...ranges.map(([page, path]): [string, string] => [
      page,
      path.replace("/events/histogram", "/url-times"),
    ]),
    ...events(""),
    ...events("/counts").filter(([, path]) => !path.includes("state=")),
    ...events("/histogram"),
    ...of("Event", `/events/${event}`, `/events/${event}/cause`, `/events/${event}/replay`),
    ...of(
      "Relay",
      "/relays",
      "/relays/signups",
      ...Object.keys({ signups: 1, "orders-paid": 1, shipping: 1, refunds: 1 }).map(
        (name) => `/relays/${name}/funnel`,
      ),
    ),
    ...of(
      "Relay",
      "/relays/signups/versions",
      "/events?relay=signups&limit=5",
      "/calls?relay=orders-paid&limit=5",
    ),
    ...of(
      "People",
      "/persons",
      "/persons?q=customer7",
      "/persons?q=nobody",
      "/persons?status=invited",
      "/persons?status=suspended",
      "/persons?access=true",
      "/persons?access=false",
    ),
    ...of(
      "People",
      "/persons?find=customer77",
      "/persons?find=customer199999%40mail.example",
      "/persons?find=store-token-77",
      "/persons?find=nobody",
    ),
    ...[BUSY, PERSON].flatMap((id) =>
      of(
        "Person",
        `/persons/${id}`,
        `/persons/${id}/story`,
        `/purchases?person=${id}`,
        `/events?person=${id}&state=dead`,
        `/events?person=${id}&state=failed`,
      ),
    ),
    ...of(
      "Person",
      "/events?q=customer777%40mail.example&state=failed",
      "/persons?email=customer777%40mail.example",
    ),
    ...of(
      "Records",
      "/collections",
      "/collections/orders/records",
      `/collections/notes/records?owner=${BUSY}`,
      `/collections/tickets/records?to=${BUSY}`,
    ),
    ...of("Calls", "/calls", "/calls?outcome=refused", "/calls?relay=orders-paid", "/unknown-calls"),
    ...of(
      "Audit",
      "/audit",
      "/audit?kind=change",
      "/audit?kind=run",
      "/audit?actor=owner:ann@example.com",
      "/audit?action=record.changed",
      "/audit?target=relay:signups",
      "/audit?actor=nobody",
    ),
    ...of("Attention", "/problems", "/problems?all=true", "/alerts", "/alerts?open=true"),
    ...of("Selling", "/products", "/plans", "/access", "/purchases", "/subscriptions", "/catalog-uses"),
    ...of("Mail", "/emails", "/emails?state=failed", "/mail/stops"),
    ...of("Palette", "/find?q=cust", "/find?q=customer777%40mail.example", `/find?q=${event}`, "/find?q=zzz"),
    ...of("Settings", "/settings", "/keys", "/bulk-replays", "/approvals"),
  ];
}
