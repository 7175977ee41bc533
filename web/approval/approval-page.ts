/**
 * Page on which an owner sees exactly what a request would change in production, then approves or rejects it. It has no
 * navigation and looks unlike the dashboard. A change that was requested in the dashboard is carried out here too.
 */
import { useRef, useState } from "preact/hooks";
import type { ApprovalView } from "../../src/operator/sync/approval.ts";
import type { PlanResult } from "../../src/operator/sync/plan-view.ts";
import { formatCommit } from "../base/commit-words.ts";
import { formatCount } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { LoadingState, Notice } from "../component/notice.ts";
import { PageHead } from "../component/page-head.ts";
import { SafeText } from "../component/safe-text.ts";
import { SecretOnce } from "../component/secret-once.ts";
import { Sentence } from "../component/sentence.ts";
import { Ago } from "../component/time.ts";
import { useSend } from "../component/use-send.ts";
import { WarningList } from "../component/warning-list.ts";
import { secretsOf } from "../relay/relay-created.ts";
import { isCarried, isUnseen, PlanEntryCard, PlanRest } from "./plan-entry.ts";

interface Answer {
  approval: ApprovalView;
}

const LOOK_EVERY_MS = 2_000;

function isOpen({ approval }: Answer): boolean {
  return approval.state === "pending" || approval.state === "approved";
}

export function ApprovalPage({ id }: { id: string }): View {
  const path = `/api/approvals/${encodeURIComponent(id)}`;
  const { data, error, isGone, reload } = useLoad<Answer>(path, (known) =>
    known === undefined || isOpen(known) ? LOOK_EVERY_MS : null,
  );
  return html`<div class="live-page">
    <header class="live-band">PRODUCTION${data !== undefined && html` of ${data.approval.app}`}</header>
    <main class="live-main">${
      data === undefined
        ? html`<h1 class="off-screen">Approval</h1><${LoadingState} error=${error} isGone=${isGone} back="the dashboard" backTo="/" onRetry=${reload} />`
        : html`<${Asked} approval=${data.approval} path=${path} reload=${reload} />`
    }</main>
  </div>`;
}

function Asked({
  approval,
  path,
  reload,
}: {
  approval: ApprovalView;
  path: string;
  reload: () => void;
}): View {
  const { app, state, shown, replaceEdited } = approval;
  const { isSending, error, send } = useSend();
  const [secrets, setSecrets] = useState<PlanResult["secrets"]>([]);
  const entries = shown?.entries ?? [];
  const decide = async (decision: "approve" | "refuse"): Promise<void> => {
    const sent = await send({ method: "POST", path, body: { decision, plan: approval.plan } });
    if (sent !== null && decision === "approve" && approval.isMine) await apply();
    reload();
  };
  // The service applies once for each key, and returns the first response again for ten minutes.
  const key = useRef<string | null>(null);
  const apply = async (): Promise<void> => {
    key.current ??= `dashboard-${crypto.getRandomValues(new Uint32Array(4)).join("")}`;
    const body = { key: key.current };
    const sent = await send<PlanResult>({ method: "POST", path: `${path}/apply`, body });
    if (sent !== null) setSecrets(sent.answer.secrets);
    reload();
  };
  const hasLostSecrets = state === "done" && secrets.length === 0 && key.current !== null;
  return html`<${PageHead} title=${state === "expired" && approval.decidedBy !== null ? "Expired: the change was approved but not made in time" : TITLES[state](app)} back="Production relays" backTo=${pagePath({ app, environment: "production" }, "relays")} />
    <${State} approval=${approval} />
    ${
      secrets.length > 0 &&
      html`<section class="card">${secrets.map(
        ({ relay, ...made }) =>
          html`<${SecretOnce} key=${relay} secrets=${secretsOf(made).map((one) => ({ ...one, label: `${relay}: ${one.label}` }))} />`,
      )}</section>`
    }
    ${state === "done" && secrets.length === 0 && html`<${MadeSecrets} approval=${approval} onAsk=${hasLostSecrets ? apply : null} />`}
    ${state === "done" && html`<${GoOn} approval=${approval} />`}
    <${Facts} approval=${approval} />
    ${
      entries.length > 0 &&
      html`<${Risks} approval=${approval} />
      <h2 class="live-title">${formatCount(shown?.changes ?? 0, "change")} of production</h2>
      <div class="stack">${entries
        .filter((entry) => isCarried(entry, replaceEdited) || isUnseen(entry))
        .map(
          (entry) =>
            html`<${PlanEntryCard} app=${approval.app} key=${`${entry.kind}:${entry.name}`} entry=${entry} replaceEdited=${replaceEdited} />`,
        )}</div>
      <${NotCarried} approval=${approval} />
      <${WarningList} warnings=${shown?.warnings ?? []} />
      <${PlanRest} entries=${entries} />`
    }
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    ${
      state === "pending" &&
      html`<div class="live-actions"><span class="quiet">${formatLeft(approval.secondsLeft)} left</span>
        <button type="button" disabled=${isSending} onClick=${() => decide("refuse")}>Reject</button>
        <button type="button" class="danger" disabled=${isSending} onClick=${() => decide("approve")}>
          ${isSending ? "One moment…" : approval.isMine ? "Approve and change production" : "Approve this change to production"}</button></div>`
    }
    ${
      state === "approved" &&
      approval.isMine &&
      html`<div class="live-actions"><span class="quiet">${formatLeft(approval.secondsLeft)} left</span>
        <button type="button" class="danger" disabled=${isSending} onClick=${apply}>Change production now</button></div>`
    }`;
}

const MAX_LINKED = 5;

/** Links each relay's page in production, which says what the relay still needs. */
function GoOn({ approval }: { approval: ApprovalView }): View {
  const { app, shown, replaceEdited } = approval;
  const place = { app, environment: "production" } as const;
  const applied = (shown?.entries ?? []).filter(
    (entry) => entry.kind === "relay" && entry.state !== "deleted" && isCarried(entry, replaceEdited),
  );
  if (applied.length === 0) return null;
  return html`<section class="card"><h2>Next steps in production</h2>
    <p>Production has its own secrets, webhooks and mail settings. The page of each relay shows its URL and what is missing.</p>
    <div class="form-actions">${
      applied.length > MAX_LINKED
        ? html`<a class="button" href=${pagePath(place, "relays")}>Production relays</a>`
        : applied.map(
            ({ name }) =>
              html`<a key=${name} class="button" href=${pagePath(place, "relays", name)}>Open ${name} in production</a>`,
          )
    }</div></section>`;
}

const TITLES: Readonly<Record<ApprovalView["state"], (app: string) => string>> = {
  pending: (app) => `Change production of ${app}?`,
  approved: (app) => `Approved: production of ${app} will change now`,
  done: (app) => `Production of ${app} was changed`,
  denied: () => "Rejected: production is unchanged",
  withdrawn: () => "Withdrawn: there is nothing to approve",
  void: () => "Invalid: production changed after this plan was made",
  expired: () => "Expired: the change was not approved in time",
};

function State({ approval }: { approval: ApprovalView }): View {
  const { state, why, isMine, decidedBy, endedAt, secondsLeft } = approval;
  const because = why !== null && html` <${Sentence} text=${why} />`;
  switch (state) {
    case "pending":
      return html`<${Notice} kind="warn">${isMine ? "You started this in the dashboard." : "A command waits for your answer. When you approve, it makes exactly this change at once."} The approval is valid once and only for this plan. If either side changes, you must approve again.<//>`;
    case "approved":
      return html`<${Notice} kind="info">${nameOf(decidedBy)} approved it. ${isMine ? "Nothing has changed yet." : `The command makes the change now, and this page shows when it is done. If the command has ended, run it again. This approval expires in ${formatLeft(secondsLeft)}.`}<//>`;
    case "done":
      return html`<${Notice} kind="good">Approved by ${nameOf(decidedBy)} and carried out <${Ago} at=${endedAt} />, in one transaction. The approval is used.<//>`;
    case "denied":
      return html`<${Notice} kind="info">${nameOf(decidedBy)} rejected it <${Ago} at=${endedAt} />, and nothing changed. The person who asked is notified.<//>`;
    default:
      return html`<${Notice} kind="info">Nothing changed, and this approval is not valid any more.${because} Ask for a new approval if you still need it.<//>`;
  }
}

function nameOf(by: string | null): string {
  return (by ?? "").replace(/^owner:/, "");
}

function Facts({ approval }: { approval: ApprovalView }): View {
  const { askedBy, askedWith, askedFrom, sourceCommit, createdAt, source, plan } = approval;
  return html`<dl class="facts">
    <div><dt>Asked by</dt><dd><span>${
      askedWith === null
        ? html`<${SafeText} text=${nameOf(askedBy)} />, in the dashboard`
        : html`a command with the key <${SafeText} text=${askedWith} limit=${160} />`
    }</span></dd></div>
    <div><dt>From address</dt><dd><code>${askedFrom}</code></dd></div>
    <div><dt>When</dt><dd><${Ago} at=${createdAt} /></dd></div>
    <div><dt>Contents</dt><dd>${source === "files" ? "files from the command" : "the definitions in development"}</dd></div>
    ${sourceCommit !== null && html`<div><dt>Commit</dt><dd><code title=${sourceCommit}>${formatCommit(sourceCommit)}</code></dd></div>`}
    <div><dt>Plan</dt><dd><code title=${plan}>${plan.slice(0, 12)}</code></dd></div>
  </dl>`;
}

/** Shows the most important risks first: what a captured request could newly do, and who receives new secrets. */
function Risks({ approval }: { approval: ApprovalView }): View {
  const { shown, isMine, state, replaceEdited } = approval;
  if (shown === undefined || state !== "pending") return null;
  const applied = shown.entries.filter((entry) => isCarried(entry, replaceEdited));
  const warned = (code: string) => applied.filter((entry) => entry.warnings.some((one) => one.code === code));
  const widened = [
    ...applied.filter(({ capturedCall }) => capturedCall?.widens === true),
    ...warned("unsigned_events").filter(({ kind }) => kind !== "relay"),
  ];
  const links = warned("payment_link_goes_live");
  return html`<div class="stack">
    ${
      widened.length > 0 &&
      html`<${Notice} kind="bad"><b>A captured request could give more than now</b>, of ${formatNames(widened.map(({ name }) => name))}: the senders do not sign their requests. See each relay below.<//>`
    }
    ${
      links.length > 0 &&
      html`<${Notice} kind="warn">Production gets new payment links for ${formatNames(links.map(({ name }) => name))}: check below that none of them is a test link.<//>`
    }
    ${
      shown.secretsOf.length > 0 &&
      html`<${Notice} kind="warn">Production gets new secrets for ${formatNames(shown.secretsOf)}. ${isMine ? "This page shows them once." : "Only the command receives them and writes them to .secrets.json next to its files. Keep that file safe: with these secrets, anyone can sign requests to these relays."}<//>`
    }</div>`;
}

/** Links the pages where secrets can be rotated. New secrets appear in one response only, which may have been lost. */
function MadeSecrets({
  approval,
  onAsk,
}: {
  approval: ApprovalView;
  /** Requests the response of the change again; null where this page did not make the change. */
  onAsk: (() => void) | null;
}): View {
  const { app, shown, isMine } = approval;
  const names = shown?.secretsOf ?? [];
  if (names.length === 0) return null;
  const place = { app, environment: "production" } as const;
  const links = names.map(
    (name, at) => html`${at > 0 && ", "}<a key=${name} href=${pagePath(place, "relays", name)}>${name}</a>`,
  );
  if (onAsk !== null)
    return html`<${Notice} kind="warn">The response with the new production secrets was lost. Show them within ten minutes, or rotate each secret on the page of its relay: ${links}.
      <p class="lost-secrets"><button type="button" onClick=${onAsk}>Show the secrets</button></p><//>`;
  return html`<${Notice} kind="warn">New production secrets were created and ${isMine ? "shown here once" : "sent once to the command, which writes them to .secrets.json next to its files"}. If a secret did not arrive, rotate it on the page of its relay: ${links}.<//>`;
}

function NotCarried({ approval }: { approval: ApprovalView }): View {
  const left = (approval.shown?.entries ?? []).filter(({ state }) => state === "not_carried");
  if (left.length === 0) return null;
  return html`<h2 class="live-title">Not included</h2>
    <p class="quiet">Production keeps what it has under ${left.length === 1 ? "this name" : "these names"}.</p>
    <div class="stack">${left.map((entry) => html`<${PlanEntryCard} app=${approval.app} key=${entry.name} entry=${entry} replaceEdited=${false} />`)}</div>`;
}

function formatNames(names: readonly string[]): string {
  return names.join(", ");
}

/** Formats seconds as `9:05`. */
function formatLeft(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
