/** Relays of a server, as the commands on a data directory have them: the same facts, each by the route that has it. */
import type { Warning } from "../../base/refusal.ts";
import type { RecentRequestView } from "../../engine/receiver/request.ts";
import type { FunnelView } from "../../insight/overview/funnel.ts";
import type { ListedRelayView } from "../../insight/overview/health.ts";
import type { ProblemView } from "../../platform/audit/problem.ts";
import { relayTarget } from "../../rules/relay/relay.ts";
import type { RelayView } from "../../rules/relay/relay-view.ts";
import { refuseMisread } from "./read-answer.ts";
import { type ListedRelay, MAX_SHOWN_CALLS, type RelayStory } from "./relay-text.ts";
import { askPlace, listRemote, type Remote, tellPlace } from "./remote.ts";

export function pathOf(name: string): string {
  return `/relays/${encodeURIComponent(name)}`;
}

async function readHeldAt(remote: Remote): Promise<string | null> {
  return (await askPlace<{ settings: { heldAt: string | null } }>(remote, "GET", "/settings")).settings
    .heldAt;
}

export async function listThere(
  remote: Remote,
  limit: number,
): Promise<{ held: boolean; items: ListedRelay[]; next: string | null }> {
  const page = await listRemote<ListedRelayView>(remote, "/relays", {}, limit);
  const problems = (await listRemote<ProblemView>(remote, "/problems")).items.toReversed();
  const items = page.items.map((item) => {
    const own = problems.filter(({ target }) => target === relayTarget(item.name));
    return { ...item, problems: own.map(({ code, message }) => ({ code, message })) };
  });
  return { held: (await readHeldAt(remote)) !== null, items, next: page.next };
}

export async function readStoryThere(remote: Remote, name: string): Promise<RelayStory> {
  const { relay, health, remembered } = await askPlace<Pick<RelayStory, "relay" | "health" | "remembered">>(
    remote,
    "GET",
    pathOf(name),
  );
  const { definition } = relay;
  const judged = await askPlace<{ warnings: Warning[] }>(remote, "POST", "/relays/validate", { definition });
  const calls = await listRemote<RecentRequestView>(remote, "/calls", { relay: name }, MAX_SHOWN_CALLS);
  const heldAt = await readHeldAt(remote);
  return { relay, health, heldAt, remembered, warnings: judged.warnings, calls: calls.items };
}

export function readFunnelThere(remote: Remote, name: string): Promise<{ funnel: FunnelView }> {
  return askPlace(remote, "GET", `${pathOf(name)}/funnel`);
}

export async function setStateThere(
  remote: Remote,
  name: string,
  to: "paused" | "resumed",
): Promise<{ relay: RelayView; held: boolean }> {
  const path = `${pathOf(name)}/${to === "paused" ? "pause" : "resume"}`;
  const { relay } = await askPlace<{ relay: RelayView }>(remote, "POST", path);
  return { relay, held: (await readHeldAt(remote)) !== null };
}

export async function rotateSigningThere(remote: Remote, name: string): Promise<{ signingSecret: string }> {
  const made = await askPlace<{ signingSecret: string }>(remote, "PUT", `${pathOf(name)}/signing-secret`);
  if (typeof made.signingSecret !== "string") throw refuseMisread(remote.url, "has no signingSecret");
  return made;
}

/** `value`: null to have the server make one, which it answers. */
export async function changeSecretThere(
  remote: Remote,
  name: string,
  value: string | null,
  overlapSeconds: number,
): Promise<{ receiverSecret?: string; previousUntil?: string }> {
  const path = `${pathOf(name)}/secret`;
  const made = await askPlace<{ receiverSecret?: string }>(remote, "PUT", path, { value, overlapSeconds });
  if (value === null && typeof made.receiverSecret !== "string")
    throw refuseMisread(remote.url, "has no receiverSecret");
  return made;
}

export async function endOverlapThere(remote: Remote, name: string): Promise<void> {
  await tellPlace(remote, "DELETE", `${pathOf(name)}/previous-secret`);
}
