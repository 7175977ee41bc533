/**
 * Failures without an error response, for relays with thousands of events an hour and for relays with a few a week, against the compiled executable.
 * The service reports one problem and one alert, or none, and writes no more log lines than minutes.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeAuthority } from "../kit/certificate.ts";
import { type Executable, placeExecutable } from "../kit/executable.ts";
import { DAY, HOUR, MINUTE, Stand } from "../kit/staged-failure.ts";
import { type Called, StagedServer, startCalled } from "../kit/staged-server.ts";

let executable: Executable;
let called: Called;
let server: StagedServer;

beforeAll(async () => {
  executable = placeExecutable("staged");
  const authority = makeAuthority("Scale");
  const file = join(executable.makeFolder(), "authority.pem");
  writeFileSync(file, authority.cert);
  called = startCalled(authority);
  const many = "1000000000";
  server = await StagedServer.start(executable, file, {
    RELAY_LIMIT_VERIFIED_EVENTS_PER_MINUTE: many,
    RELAY_LIMIT_EVENTLESS_CALLS_PER_MINUTE: many,
  });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await called[Symbol.asyncDispose]();
  executable[Symbol.dispose]();
});

const AT_ONCE = 25;
let serial = 0;

/** Sends this many requests, spread over the time. `body` returns the body of the request with this number. */
async function over(stand: Stand, ms: number, count: number, body: (nth: number) => object): Promise<void> {
  const steps = Math.min(count, 60);
  for (let step = 0, sent = 0; step < steps; step++) {
    for (const until = Math.ceil((count * (step + 1)) / steps); sent < until; ) {
      const some = Array.from({ length: Math.min(AT_ONCE, until - sent) }, (_, nth) => stand.call({ id: `e${serial++}`, ...body(sent + nth) }));
      sent += some.length;
      const answers = await Promise.all(some);
      expect([...new Set(answers.map(({ status }) => status))]).toEqual([200]);
    }
    if (step === steps - 1) break;
    if (ms / steps > HOUR) await stand.leap(ms / steps);
    else await stand.pass(ms / steps);
  }
  await stand.pass(1_000);
}

const PERSON = { event_id: "id", person_id: "p" };
const GRANT = { type: "grant_credits", amount: 1 };
const when = { event_type: "order.paid" };

interface Row {
  rule: string;
  happens(stand: Stand): Promise<unknown>;
  /** The codes of the problems and alerts. */
  told: string[];
}

const ROWS: readonly Row[] = [
  {
    rule: "3,000 calls in an hour that when ignores, of a relay that never acted",
    happens: async (stand) => {
      await stand.relay({ when });
      await over(stand, HOUR + 5 * MINUTE, 3_000, () => ({ type: "order.seen" }));
    },
    told: ["relay_ignoring"],
  },
  {
    rule: "3,000 calls in an hour of which one in ten passes",
    happens: async (stand) => {
      await stand.relay({ when });
      await over(stand, HOUR + 5 * MINUTE, 3_000, (nth) => ({ type: nth % 10 === 0 ? "order.paid" : "order.seen" }));
    },
    told: [],
  },
  {
    rule: "three calls in a week that when ignores",
    happens: async (stand) => {
      await stand.relay({ when });
      await over(stand, 7 * DAY, 3, () => ({ type: "order.seen" }));
    },
    told: ["relay_ignoring"],
  },
  {
    rule: "2,000 events in an hour that find nobody",
    happens: async (stand) => {
      await stand.relay({ map: PERSON, actions: [GRANT] });
      await over(stand, HOUR, 2_000, () => ({ p: "per_nobody" }));
    },
    told: ["relay_nobody"],
  },
  {
    rule: "2,000 events in an hour of which one in a hundred finds nobody",
    happens: async (stand) => {
      await stand.relay({ map: PERSON, actions: [GRANT] });
      const p = await stand.person();
      await over(stand, HOUR, 2_000, (nth) => ({ p: nth % 100 === 99 ? "per_nobody" : p }));
    },
    told: [],
  },
  {
    rule: "one event in a week that finds nobody, of a relay whose others found somebody",
    happens: async (stand) => {
      await stand.relay({ map: PERSON, actions: [GRANT] });
      const p = await stand.person();
      await over(stand, 7 * DAY, 4, (nth) => ({ p: nth === 2 ? "per_nobody" : p }));
    },
    told: [],
  },
  {
    rule: "200 events in an hour whose every call fails",
    happens: async (stand) => {
      stand.called.status = 500;
      await stand.relay({ actions: [stand.notice] });
      await over(stand, HOUR, 200, () => ({}));
    },
    told: ["relay_failing"],
  },
  {
    rule: "one event whose call fails, tried again and again for an hour",
    happens: async (stand) => {
      stand.called.status = 500;
      await stand.relay({ actions: [stand.notice] });
      await stand.call({ id: "only" });
      await stand.pass(HOUR);
    },
    told: ["relay_failing"],
  },
];

describe("the service raises one problem and one alert, or none", () => {
  test.each(ROWS.map((row, nth) => [row.rule, nth, row] as const))("%s", async (_rule, nth, { happens, told }) => {
    const stand = await Stand.start(server, called, `scale_${nth}`);
    await happens(stand);
    const codes = async (path: string) => {
      const { items } = (await stand.api("GET", path)).body;
      return items.map(({ code }: { code: string }) => code).filter((code: string) => !/^relay_(silent|recovered|uncalled)$/.test(code));
    };
    expect([await codes("/problems?all=true"), await codes("/alerts")]).toEqual([told, told]);
    const minutes = (server.nowMs - stand.startMs) / MINUTE;
    const lines = (await stand.told()).filter(({ where, text }) => where === "log" && text.includes(`"app":"${stand.app}"`));
    expect(lines.length).toBeLessThanOrEqual(4 + 2 * minutes);
  });
});
