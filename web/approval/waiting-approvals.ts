/** Notices for changes of production that wait for an owner's approval, and content for when none waits. */
import type { ApprovalView } from "../../src/operator/sync/approval.ts";
import { mayIn, session } from "../account/session.ts";
import { useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Ago } from "../component/time.ts";

const LOOK_EVERY_MS = 10_000;

/** Returns null while the answer is unknown. */
function useWaiting(place: Place): ApprovalView[] | null {
  const known = useCell(session);
  // The approvals change production. A member of only development does not see them.
  const seesProduction =
    known !== undefined && mayIn(known, { ...place, environment: "production" }).includes("read");
  const path = seesProduction ? apiPath(place, "approvals") : null;
  const { data, error } = useLoad<{ approvals: ApprovalView[] }>(path, LOOK_EVERY_MS);
  if (path === null) return [];
  if (data === undefined && error === null) return null;
  return (data?.approvals ?? []).filter(({ state }) => state === "pending");
}

export function UnlessWaiting({ place, children }: { place: Place; children?: View }): View {
  return useWaiting(place)?.length === 0 ? children : null;
}

export function WaitingApprovals({ place }: { place: Place }): View {
  const waiting = useWaiting(place);
  return html`${waiting?.map(
    ({ id, askedWith, askedBy, createdAt }) => html`<${Notice} key=${id} kind="warn">
      <b>A change to production waits for approval</b>, requested <${Ago} at=${createdAt} /> ${askedWith === null ? "by" : "with"} <${SafeText} text=${askedWith ?? askedBy.replace(/^owner:/, "")} limit=${120} />.${" "}<a href="/approvals/${id}">Review change</a><//>`,
  )}`;
}
