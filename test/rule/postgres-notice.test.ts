/** The notices between nodes on one PostgreSQL: those sent at once, and those gathered for a moment first. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { ChangedTopics, Topic } from "../../src/store/port.ts";
import { Notices, readNotice } from "../../src/store/postgres/notification.ts";
import { holdRealClock } from "../kit/moved-clock.ts";
import { poll } from "../kit/patience.ts";

let sent: string[];
let refused: number;
let notices: Notices;

beforeEach(() => {
  sent = [];
  refused = 0;
  notices = new Notices("node_1", async (text) => {
    if (refused > 0) {
      refused -= 1;
      throw new Error("The database is away.");
    }
    sent.push(text);
  });
});

afterEach(() => notices.close(true));

const untilSent = () =>
  poll(
    () => sent.length,
    (count) => count > 0,
  );
const untilRefused = () =>
  poll(
    () => refused,
    (left) => left === 0,
  );

const changes = (...topics: [Topic, ...string[]][]): ChangedTopics => new Map(topics.map(([topic, ...ids]) => [topic, new Set(ids)]));
/** Commits a transaction without a notice, and then its answer. */
const commitsAlone = (what: ChangedTopics): void => {
  expect(notices.take(what)).toBeNull();
  notices.gather(what);
};
/** Parses a notice as its reader does. */
const told = (text: string | undefined): Record<string, unknown> => {
  const { node, topics } = readNotice(text ?? "");
  return { node, ...Object.fromEntries((topics ?? []).map(([topic, ids]) => [topic, [...ids].toSorted()])) };
};

describe("a transaction's changes", () => {
  for (const topic of ["relay", "environment", "event", "record_change", "bulk_replay", "problem", "alert", "erasure", "lease"] as const)
    test(`are announced with the commit if another node acts on them: ${topic}`, () => {
      expect(told(notices.take(changes([topic, "7"]))?.text)).toEqual({ node: "node_1", [topic]: ["7"] });
    });

  test("are gathered if other nodes only show them, and announced once", async () => {
    for (let at = 0; at < 40; at++) commitsAlone(changes(["event_moved", String(at % 3)], ["record", "1"], ["event_left", "rly_1"]));
    expect(sent).toEqual([]);
    await untilSent();
    expect(sent.map(told)).toEqual([{ node: "node_1", event_moved: ["0", "1", "2"], record: ["1"], event_left: ["rly_1"] }]);
    await Bun.sleep(100);
    expect(sent.length).toBe(1);
  });

  test("are announced with the next notice of a commit, or with the commit at their due time", async () => {
    commitsAlone(changes(["event_moved", "1"]));
    expect(told(notices.take(changes(["event", "rly_1"]))?.text)).toEqual({ node: "node_1", event_moved: ["1"], event: ["rly_1"] });
    commitsAlone(changes(["call", "1"]));
    // The transaction comes before the timer fires.
    using clock = holdRealClock();
    clock.pass(60);
    expect(told(notices.take(changes(["audit", "2"]))?.text)).toEqual({ node: "node_1", call: ["1"], audit: ["2"] });
    await Bun.sleep(100);
    expect(sent).toEqual([]);
  });

  test("are not announced before the commit is answered, by the timer or by the next transaction", async () => {
    const underWay = changes(["event_moved", "1"]);
    expect(notices.take(underWay)).toBeNull();
    await Bun.sleep(150);
    expect(sent).toEqual([]);
    expect(told(notices.take(changes(["event", "rly_1"]))?.text)).toEqual({ node: "node_1", event: ["rly_1"] });
    notices.gather(underWay);
    await untilSent();
    expect(sent.map(told)).toEqual([{ node: "node_1", event_moved: ["1"] }]);
  });

  test("cause no notice if there are none", async () => {
    expect(notices.take(changes())).toBeNull();
    await Bun.sleep(80);
    expect(sent).toEqual([]);
  });
});

describe("unannounced changes", () => {
  test("of a rolled back transaction are announced later", async () => {
    const notice = notices.take(changes(["event_moved", "1"], ["relay", "2"]));
    if (notice === null) throw new Error("nothing is told");
    notices.giveBack(notice.changes);
    expect(told(notices.take(changes(["lease", ""]))?.text)).toEqual({ node: "node_1", event_moved: ["1"], relay: ["2"], lease: [""] });
  });

  test("during an outage of the database are announced after it", async () => {
    refused = 1;
    commitsAlone(changes(["event_moved", "1"]));
    await untilRefused();
    await untilSent();
    expect(sent.map(told)).toEqual([{ node: "node_1", event_moved: ["1"] }]);
  });

  test("are announced when the node ends", async () => {
    commitsAlone(changes(["event_moved", "1"]));
    await notices.close(true);
    expect(sent.map(told)).toEqual([{ node: "node_1", event_moved: ["1"] }]);
  });

  test("are dropped when the node ends while the database is unavailable", async () => {
    refused = 1;
    commitsAlone(changes(["event_moved", "1"]));
    await untilRefused();
    const late = notices.take(changes(["relay", "2"]));
    await notices.close(false);
    if (late !== null) notices.giveBack(late.changes);
    await Bun.sleep(1_200);
    expect([sent, refused]).toEqual([[], 0]);
  });
});
