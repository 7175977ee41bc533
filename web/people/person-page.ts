/** Page of one person: current access and its source, failures, and the timeline. It answers a support request on one screen. */
import type { PersonNow } from "../../src/interfaces/api/person.ts";
import type { PersonItem } from "../../src/shop/people/person-list.ts";
import type { Page } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { DOCS, DocsLink } from "../component/docs-link.ts";
import { LoadingState, Notice, StaleNotice } from "../component/notice.ts";
import { PageHead } from "../component/page-head.ts";
import { CurrentAccess } from "./current-access.ts";
import { FailedEvents } from "./failed-events.ts";
import { PersonActs } from "./person-acts.ts";
import { PersonFacts } from "./person-facts.ts";
import { PersonState } from "./person-list.ts";
import { PersonNotFound } from "./person-not-found.ts";
import { PersonTimeline } from "./person-timeline.ts";
import { SimilarBuyers } from "./similar-buyers.ts";

const REFRESH_MS = 5_000;
const ID = /^per_[0-9a-z]{1,64}$/;

/** Opens a person by id, or finds one by email address or store account token. */
export function PersonPage({ place, params }: PageProps): View {
  const name = params.id ?? "";
  return ID.test(name)
    ? html`<${Known} key=${name} place=${place} id=${name} />`
    : html`<${Named} place=${place} name=${name} />`;
}

function Named({ place, name }: { place: Place; name: string }): View {
  const path = apiPath(place, "persons") + writeQuery({ find: name, limit: 1 });
  const { data, error, isGone, reload } = useLoad<Page<PersonItem>>(path);
  const back = { back: "People", backTo: pagePath(place, "people") };
  const head = html`<${PageHead} title=${name} ...${back} />`;
  if (data === undefined)
    return html`${head}<${LoadingState} error=${error} isGone=${isGone} ...${back} onRetry=${reload} />`;
  const [found] = data.items;
  const isMeant = found !== undefined && (!name.includes("@") || same(found.email, name));
  return isMeant
    ? html`<${Known} key=${found.id} place=${place} id=${found.id} />`
    : html`${head}<${PersonNotFound} place=${place} name=${name} />`;
}

function same(left: string, right: string): boolean {
  return left.normalize("NFC").toLowerCase() === right.trim().normalize("NFC").toLowerCase();
}

function Known({ place, id }: { place: Place; id: string }): View {
  const { data, error, isGone, reload } = useLoad<PersonNow>(apiPath(place, "persons", id), REFRESH_MS);
  // Starts loading the timeline together with the person.
  useLoad(apiPath(place, "persons", id, "story"));
  const back = { back: "People", backTo: pagePath(place, "people") };
  if (data === undefined) {
    return html`<${PageHead} title="Person" ...${back} />
      <${LoadingState} error=${error} isGone=${isGone} ...${back} rows=${8} onRetry=${reload} />`;
  }
  const { person } = data;
  return html`<${PageHead} title=${person.email} ...${back} aside=${html`<${PersonState} status=${person.status} />`}>
      <${PersonActs} place=${place} now=${data} /><//>
    ${error !== null && html`<${StaleNotice} error=${error} />`}
    ${person.status === "suspended" && html`<${Notice} kind="warn">Suspended: the person cannot use any access, and no relay acts for them.<//>`}
    <${FailedEvents} place=${place} person=${person} />
    ${!data.access.granted && data.subscription === null && html`<${SimilarBuyers} place=${place} person=${person} />`}
    <${CurrentAccess} place=${place} now=${data} />
    <div class="columns person-columns"><${PersonTimeline} place=${place} id=${id} />
      <aside class="column-side" aria-label="About the person"><${PersonFacts} place=${place} now=${data} />
        <p class="quiet"><${DocsLink} to=${DOCS.access}>Why does this person have no access?<//></p></aside></div>`;
}
