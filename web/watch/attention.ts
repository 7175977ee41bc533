/** What needs a person: problems that stand, and alerts that were raised. */

import type { AlertView } from "../../src/watch/alert.ts";
import { writeQuery } from "../ground/api.ts";
import { sayCount } from "../ground/count-words.ts";
import { html, type View } from "../ground/html.ts";
import type { PageProps } from "../ground/page.ts";
import { apiPath, type Place, pagePath } from "../ground/place.ts";
import { useList } from "../ground/use-list.ts";
import { Code } from "../part/code.ts";
import { EmptyState, ErrorState, Skeleton } from "../part/notice.ts";
import { OlderButton } from "../part/older-button.ts";
import { PageHead } from "../part/page-head.ts";
import { Sentence } from "../part/sentence.ts";
import { Ago } from "../part/time.ts";
import { useSend } from "../part/use-send.ts";
import { useProblems } from "./attention-count.ts";
import { sayKind } from "./kind-words.ts";

export function AttentionPage({ place }: PageProps): View {
  const problems = useProblems(place);
  const path = apiPath(place, "alerts");
  const alerts = useList<AlertView>(path, 10_000);
  const { send, isSending } = useSend();
  const error = problems.error ?? alerts.error;
  const head = html`<${PageHead} title="Attention" />`;
  if (problems.data === undefined || alerts.items === undefined) {
    if (error === null) return html`${head}<${Skeleton} rows=${4} />`;
    const retry = (): void => {
      problems.reload();
      alerts.reload();
    };
    return html`${head}<${ErrorState} error=${error} onRetry=${retry} />`;
  }
  const resolve = (id: string) =>
    send({
      method: "POST",
      path: apiPath(place, "alerts", id, "resolve"),
      changes: [path, apiPath(place, "problems")],
      done: "The alert is resolved; what happens again is told again.",
      tellsRefusal: true,
    });
  if (problems.data.items.length === 0 && alerts.items.length === 0) {
    return html`${head}<${EmptyState} icon="check" title="Nothing needs you">
      <p>Problems of relays and alerts of dead events appear here.</p><//>`;
  }
  return html`${head}
    ${
      problems.data.items.length > 0 &&
      html`<section class="block" aria-label="Problems"><div class="block-head"><h2>Problems</h2>
        <span class="quiet">${sayCount(problems.data.items.length, "stands", "stand")} now</span></div>
        <ul class="watch">${problems.data.items.map(
          ({ id, code, docs, target, message, raisedAt }) =>
            html`<li key=${id} class="watch-bad"><div class="watch-head">
              <${Target} place=${place} target=${target} /><${Kind} code=${code} docs=${docs} />
              <span class="quiet">since <${Ago} at=${raisedAt} /></span></div><p><${Sentence} text=${message} /></p>
              </li>`,
        )}</ul></section>`
    }
    ${
      alerts.items.length > 0 &&
      html`<section class="block" aria-label="Alerts"><div class="block-head"><h2>Alerts</h2></div>
        <ul class="watch">${alerts.items.map(
          ({ id, code, docs, target, message, count, lastAt, mailedAt, resolvedAt }) =>
            html`<li key=${id}><div class="watch-head"><${Target} place=${place} target=${target} />
              <${Kind} code=${code} docs=${docs} />${count > 1 && html`<span class="chip">${count} times</span>`}
              ${resolvedAt === null && html`<button type="button" disabled=${isSending} onClick=${() => resolve(id)}>Resolve</button>`}
              <span class="quiet"><${Ago} at=${lastAt} />${mailedAt !== null && " · mailed"}${resolvedAt !== null && " · resolved"}</span></div><p>
              <${Sentence} text=${message} /></p>
              ${code === "relay_failed" && html`<a href=${deadEvents(place, target)}>See its dead events</a>`}
              ${code === "mail_unknown" && html`<a href=${pagePath(place, "mail") + writeQuery({ state: "unknown" })}>See these mails</a>`}
              </li>`,
        )}</ul><${OlderButton} list=${alerts} none="These are all." /></section>`
    }`;
}

/** In words where there are any, beside the code that the API has. */
function Kind({ code, docs }: { code: string; docs: string | undefined }): View {
  const words = sayKind(code);
  return html`${words !== null && html`<span>${words}</span>`}<${Code} code=${code} docs=${docs} />`;
}

/** A target such as `relay:order-paid` as a link, where it has a page. */
function Target({ place, target }: { place: Place; target: string }): View {
  const [kind, name] = [target.slice(0, target.indexOf(":")), target.slice(target.indexOf(":") + 1)];
  if (kind === "relay") return html`<a data-row href=${pagePath(place, "relays", name)}>${name}</a>`;
  if (kind === "event") return html`<a data-row href=${pagePath(place, "events", name)}>${name}</a>`;
  return html`<b>${target}</b>`;
}

function deadEvents(place: Place, target: string): string {
  return pagePath(place, "events") + writeQuery({ relay: target.replace("relay:", ""), state: "dead" });
}
