/** Requests about relays that several commands make. */
import type { Page } from "../../../base/page.ts";
import { Refusal, type Warning } from "../../../base/refusal.ts";
import type { RecentRequestView } from "../../../engine/receiver/request.ts";
import type { ChecklistView } from "../../../insight/overview/checklist.ts";
import type { FunnelView } from "../../../insight/overview/funnel.ts";
import type { ListedRelayView } from "../../../insight/overview/health.ts";
import type { ProblemView } from "../../../platform/audit/problem.ts";
import { relayTarget } from "../../../rules/relay/relay.ts";
import type { RelayView } from "../../../rules/relay/relay-view.ts";
import type { Api } from "../api/api.ts";
import { rejectMisread } from "../api/read-answer.ts";
import { type ListedRelay, MAX_SHOWN_CALLS, type RelayStory } from "./text.ts";

export function pathOf(name: string): string {
  return `/relays/${encodeURIComponent(name)}`;
}

async function readHeldAt(api: Api): Promise<string | null> {
  return (await api.request<{ settings: { heldAt: string | null } }>("GET", "/settings")).settings.heldAt;
}

/** The order and the filter of a list of relays. An interface would not be assignable to the query of a request. */
type RelayQuery = {
  sort: string | null;
  state: string | null;
  search: string | null;
};

export async function listRelays(
  api: Api,
  query: RelayQuery,
  limit: number,
): Promise<{ held: boolean; items: ListedRelay[]; next: string | null }> {
  const page = await listPage(api, query, limit);
  const problems = (await api.list<ProblemView>("/problems")).items.toReversed();
  const items = page.items.map((item) => {
    const own = problems.filter(({ target }) => target === relayTarget(item.name));
    return { ...item, problems: own.map(({ code, message }) => ({ code, message })) };
  });
  return { held: (await readHeldAt(api)) !== null, items, next: page.next };
}

/** Lists the worst relays first where nothing is chosen. A server of an earlier version does not sort, so it lists the newest first. */
async function listPage(api: Api, query: RelayQuery, limit: number): Promise<Page<ListedRelayView>> {
  try {
    return await api.list<ListedRelayView>("/relays", { ...query, sort: query.sort ?? "trouble" }, limit);
  } catch (error) {
    const problems = error instanceof Refusal ? (error.extra.problems ?? []) : [];
    const isDefault = Object.values(query).every((value) => value === null);
    if (!isDefault || !problems.some(({ field }) => field === "sort")) throw error;
    return await api.list<ListedRelayView>("/relays", {}, limit);
  }
}

export function readRelay(
  api: Api,
  name: string,
): Promise<Pick<RelayStory, "relay" | "health" | "remembered">> {
  return api.request("GET", pathOf(name));
}

export async function readRelayStory(api: Api, name: string): Promise<RelayStory> {
  const { relay, health, remembered } = await readRelay(api, name);
  const { definition } = relay;
  const checked = await api.request<{ warnings: Warning[] }>("POST", "/relays/validate", { definition });
  const calls = await api.list<RecentRequestView>("/calls", { relay: name }, MAX_SHOWN_CALLS);
  const heldAt = await readHeldAt(api);
  return { relay, health, heldAt, remembered, warnings: checked.warnings, calls: calls.items };
}

export function readRelayFunnel(api: Api, name: string): Promise<{ funnel: FunnelView }> {
  return api.request("GET", `${pathOf(name)}/funnel`);
}

export function readRelayChecklist(api: Api, name: string): Promise<{ checklist: ChecklistView }> {
  return api.request("GET", `${pathOf(name)}/checklist`);
}

export async function setRelayState(
  api: Api,
  name: string,
  to: "paused" | "resumed",
): Promise<{ relay: RelayView; held: boolean }> {
  const path = `${pathOf(name)}/${to === "paused" ? "pause" : "resume"}`;
  const { relay } = await api.request<{ relay: RelayView }>("POST", path);
  return { relay, held: (await readHeldAt(api)) !== null };
}

export async function rotateSigning(
  api: Api,
  name: string,
  overlapSeconds: number,
): Promise<{ signingSecret: string; previousUntil?: string }> {
  const path = `${pathOf(name)}/signing-secret`;
  const body = overlapSeconds === 0 ? undefined : { overlapSeconds };
  const made = await api.request<{ signingSecret: string; previousUntil?: string }>("PUT", path, body);
  if (typeof made.signingSecret !== "string") throw rejectMisread(api.url, "has no signingSecret");
  return made;
}

/** Stores the secret. With null it creates one and returns it. */
export async function changeRelaySecret(
  api: Api,
  name: string,
  value: string | null,
  overlapSeconds: number,
): Promise<{ receiverSecret?: string; previousUntil?: string }> {
  const path = `${pathOf(name)}/secret`;
  const made = await api.request<{ receiverSecret?: string }>("PUT", path, { value, overlapSeconds });
  if (value === null && typeof made.receiverSecret !== "string")
    throw rejectMisread(api.url, "has no receiverSecret");
  return made;
}

export async function endRelayOverlap(api: Api, name: string, isSigning: boolean): Promise<void> {
  await api.command("DELETE", `${pathOf(name)}/previous-secret${isSigning ? "?kind=signing" : ""}`);
}
