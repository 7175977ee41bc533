/**
 * Page that promotes development to production. The server previews the changes in a transaction that it rolls back.
 * The page then links to the approval.
 */
import { useEffect, useState } from "preact/hooks";
import type { ApprovalView } from "../../src/operator/sync/approval.ts";
import type { PlanPreview } from "../../src/operator/sync/plan-view.ts";
import { formatCount } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import { apiPath, pagePath } from "../base/place.ts";
import { navigate } from "../base/route.ts";
import { EmptyState, LoadingState, Notice } from "../component/notice.ts";
import { PageHead } from "../component/page-head.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";
import { WarningList } from "../component/warning-list.ts";
import { isCarried, PlanEntryCard, PlanRest } from "./plan-entry.ts";

const WANTED = { from: "development", to: "production" } as const;

export function PromotePage({ place }: PageProps): View {
  const [plan, setPlan] = useState<PlanPreview | null>(null);
  const [replaceEdited, setReplace] = useState(false);
  const { isSending, error, send } = useSend();
  const load = async (replaces: boolean): Promise<void> => {
    const body = { ...WANTED, replaceEdited: replaces };
    const read = await send<PlanPreview>({ method: "POST", path: apiPath(place, "sync", "plan"), body });
    if (read !== null) setPlan(read.answer);
  };
  useEffect(() => void load(false), []);
  const replace = (replaces: boolean): void => {
    setReplace(replaces);
    void load(replaces);
  };
  const ask = async (): Promise<void> => {
    const body = { ...WANTED, replaceEdited, plan: plan?.plan };
    const asked = await send<{ approval: ApprovalView }>({
      method: "POST",
      path: apiPath(place, "approvals"),
      body,
    });
    if (asked !== null) navigate(`/approvals/${asked.answer.approval.id}`);
  };
  return html`<${PageHead} title="Promote to production" back="Relays" backTo=${pagePath(place, "relays")} />
    ${
      plan === null
        ? html`<${LoadingState} error=${error} onRetry=${() => load(replaceEdited)} />`
        : html`<${DryRun} app=${place.app} plan=${plan} replaceEdited=${replaceEdited} onReplace=${replace} isSending=${isSending} error=${error} onAsk=${ask} onAgain=${() => load(replaceEdited)} />`
    }`;
}

function DryRun({
  app,
  plan,
  replaceEdited,
  onReplace,
  isSending,
  error,
  onAsk,
  onAgain,
}: {
  app: string;
  plan: PlanPreview;
  replaceEdited: boolean;
  onReplace: (replaces: boolean) => void;
  isSending: boolean;
  error: string | null;
  onAsk: () => void;
  onAgain: () => void;
}): View {
  const { entries, changes, warnings } = plan;
  const edited = entries.filter(({ state }) => state === "edited");
  const left = entries.filter(({ state }) => state === "not_carried");
  const refused =
    plan.refusal ??
    entries.find(({ state, refusal }) => refusal !== null && state !== "not_carried")?.refusal ??
    null;
  if (changes === 0 && edited.length === 0 && left.length === 0)
    return entries.some(({ state }) => state === "unchanged")
      ? html`<${EmptyState} icon="check" title="Production is up to date">
          <p>Production has the same relays and catalog as development.</p><//>`
      : html`<${EmptyState} icon="help" title="Development has nothing to promote">
          <p>Create relays in development, or upload them with <code>relay sync</code>. Production stays unchanged.</p><//>`;
  return html`<div class="stack">
    <p class="lead">This is a dry run: nothing has changed. Production changes like this after you approve it on the next page. Promoting copies definitions, never data or secrets.</p>
    ${
      edited.length > 0 &&
      html`<${Notice} kind="warn">${edited.map(({ kind, name }) => `${kind} ${name}`).join(", ")}: edited in production since the last promote.
        <label class="plan-choice"><input type="checkbox" checked=${replaceEdited} disabled=${isSending} onChange=${(event: Event) => onReplace((event.target as HTMLInputElement).checked)} /> Replace ${edited.length === 1 ? "it" : "them"} with the definitions in development</label><//>`
    }
    ${entries
      .filter((entry) => isCarried(entry, replaceEdited) || entry.state === "edited")
      .map(
        (entry) =>
          html`<${PlanEntryCard} app=${app} key=${`${entry.kind}:${entry.name}`} entry=${entry} replaceEdited=${replaceEdited} />`,
      )}
    ${
      left.length > 0 &&
      html`<h2 class="live-title">Not included</h2>${left.map((entry) => html`<${PlanEntryCard} app=${app} key=${entry.name} entry=${entry} replaceEdited=${false} />`)}`
    }
    <${WarningList} warnings=${warnings} />
    <${PlanRest} entries=${entries} />
    ${plan.refusal !== null && html`<${Notice} kind="bad"><${Sentence} text=${plan.refusal.message} /><//>`}
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="form-actions">
      <button type="button" disabled=${isSending} onClick=${onAgain}>Check again</button>
      <button data-needs="request_changes" type="button" class="primary" disabled=${isSending || changes === 0 || refused !== null} onClick=${onAsk}>
        ${changes === 0 ? "Nothing to promote" : `Continue to approve ${formatCount(changes, "change")}…`}</button></div>
  </div>`;
}
