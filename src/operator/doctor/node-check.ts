/**
 * Checks the running nodes and what they must have in common. The master key needs no check, because no node starts with a different one.
 */
import { MINUTE_MS } from "../../base/limit.ts";
import type { Reader } from "../../store/port.ts";
import { type Finding, formatCount, formatDuration, pass, warn } from "./finding.ts";

/** Nodes report themselves every few seconds. */
const LIVE_MS = 10_000;
const CLOCK_SLACK_MS = MINUTE_MS;
/** The step to take if clocks differ, with what depends on each node's clock. */
export const CLOCK_ADVICE =
  "set every machine's clock by the network; signed timestamps verify within five minutes only, and schedules and retries go by the clock of the node that runs them";

interface Node {
  host: string;
  pid: number;
  version: string;
  /** The base URL; "" if none was given, null if an earlier version does not report it. */
  baseUrl: string | null;
  /** The milliseconds by which its clock is ahead of the database's. */
  aheadMs: number | null;
}

export async function checkNodes(tx: Reader): Promise<Finding[]> {
  const nodes = await tx.all<Node>(
    `SELECT host, pid, version, base_url AS "baseUrl", clock_at - seen_at AS "aheadMs" FROM node
     WHERE seen_at > now_ms() - ${LIVE_MS} ORDER BY started_at, id`,
  );
  if (nodes.length === 0) return [pass("nodes", "None serves at present.")];
  const findings = [checkVersions(nodes)];
  if (nodes.length > 1) findings.push(checkBaseUrls(nodes), checkClocks(nodes));
  return findings;
}

function checkVersions(nodes: readonly Node[]): Finding {
  const names = nodes.map(({ host, version }) => `${host} (${version})`).join(", ");
  const message = `${formatCount(nodes.length, "node")} ${nodes.length === 1 ? "serves" : "serve"}: ${names}.`;
  if (new Set(nodes.map(({ version }) => version)).size === 1) return pass("nodes", message);
  return warn("nodes", message, "bring every node to the newest of these versions, one after the other");
}

/** Compares the base URLs, because links in mails, receiver URLs and sessions use them, whichever node made them. */
function checkBaseUrls(nodes: readonly Node[]): Finding {
  const alike = [...Map.groupBy(nodes, ({ baseUrl }) => baseUrl)].filter(([baseUrl]) => baseUrl !== null);
  if (alike.length === 0) return pass("nodes' base URLs", "No node reports its base URL.");
  const [[first] = [""]] = alike;
  const node = nodes.some(({ baseUrl }) => baseUrl === null) ? "node that reports its base URL" : "node";
  if (alike.length < 2 && first !== "") return pass("nodes' base URLs", `Every ${node} has ${first}.`);
  const parts = alike.map(([baseUrl, some]) => `${some.map(formatNode).join(" and ")}: ${baseUrl || "none"}`);
  return warn(
    "nodes' base URLs",
    alike.length < 2
      ? `No ${node} has a configured base URL: each uses its own address.`
      : `They differ: ${parts.join("; ")}.`,
    "start every node with the same --base-url (RELAY_BASE_URL), the https origin that browsers and senders open",
  );
}

function checkClocks(nodes: readonly Node[]): Finding {
  const known = nodes.flatMap(({ aheadMs, ...node }) => (aheadMs === null ? [] : [{ ...node, aheadMs }]));
  const [slowest, ...others] = known.toSorted((one, other) => one.aheadMs - other.aheadMs);
  const fastest = others.at(-1);
  const apartMs = slowest === undefined || fastest === undefined ? 0 : fastest.aheadMs - slowest.aheadMs;
  if (slowest === undefined || fastest === undefined || apartMs <= CLOCK_SLACK_MS)
    return pass("nodes' clocks", "They say the same time, to a minute.");
  return warn(
    "nodes' clocks",
    `That of ${formatNode(fastest)} is ${formatDuration(apartMs)} ahead of that of ${formatNode(slowest)}.`,
    CLOCK_ADVICE,
  );
}

/** One machine may run several nodes. */
function formatNode({ host, pid }: Pick<Node, "host" | "pid">): string {
  return `${host} (process ${pid})`;
}
