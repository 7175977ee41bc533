/**
 * List of the environment's collections. A link can open the form for a missing collection that a relay writes to:
 * `?new=invoices&relay=invoices`.
 */
import { useState } from "preact/hooks";
import type { Page, Relay } from "../base/answer.ts";
import { formatCount } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { navigate, setQuery } from "../base/route.ts";
import { useLoad } from "../base/use-load.ts";
import { afterMaking } from "../component/create-item.ts";
import { Icon } from "../component/icon.ts";
import { EmptyState, LoadingState } from "../component/notice.ts";
import { PageHead } from "../component/page-head.ts";
import { TabLinks } from "../component/tab-links.ts";
import { type Column, Table } from "../component/table.ts";
import { timeColumn } from "../component/time-column.ts";
import { CollectionForm } from "./collection-form.ts";
import { FileList } from "./file-list.ts";
import { type Collection, fieldNames, KIND_WORDS } from "./shape.ts";

type Row = Collection & { id: string };

/** Shows the collections, or with `?tab=files` the files of their records. */
export function CollectionListPage({ place, query }: PageProps): View {
  const isFiles = query.get("tab") === "files";
  const path = pagePath(place, "records");
  const tabs = [
    { name: "", title: "Collections", href: path },
    { name: "files", title: "Files", href: `${path}?tab=files` },
  ];
  return html`<${PageHead} title="Records" />
    <${TabLinks} label="Records" tabs=${tabs} chosen=${isFiles ? "files" : ""} />
    ${isFiles ? html`<${FileList} place=${place} />` : html`<${Collections} place=${place} query=${query} />`}`;
}

function Collections({ place, query }: { place: Place; query: URLSearchParams }): View {
  const { data, error, reload } = useLoad<Page<Collection>>(`${apiPath(place, "collections")}?limit=200`);
  const rows = (data?.items ?? [])
    .map((one): Row => ({ ...one, id: one.name }))
    .toSorted((left, right) => (left.name < right.name ? -1 : 1));
  const [isMaking, setMaking] = useState(false);
  const [missing, relay] = [query.get("new"), query.get("relay")];
  const close = (): void => {
    setMaking(false);
    setQuery({ new: "", relay: "", back: "" });
  };
  // A user who came from a relay continues with what waits for the collection.
  const made = (name: string): void =>
    navigate(afterMaking(place, query) ?? pagePath(place, "records", name));
  return html`<div class="tab-actions"><button data-needs="edit_definitions" type="button" onClick=${() => setMaking(true)}><${Icon} name="plus" size=${14} />New collection…</button></div>
    ${isMaking && html`<${CollectionForm} place=${place} collection=${null} onClose=${close} onMade=${made} />`}
    ${missing !== null && relay !== null && html`<${MissingForm} place=${place} relay=${relay} wanted=${missing} onClose=${close} onMade=${made} />`}
    ${
      data === undefined
        ? html`<${LoadingState} error=${error} rows=${4} onRetry=${reload} />`
        : rows.length === 0
          ? html`<${EmptyState} icon="records" title="No collections yet">
            <p>A collection defines the records that your app and your relays write. Create one here, in <code>service/catalog.json</code>, or with <code>relay catalog set collection</code>.</p>
            <//>`
          : html`<${Table} label="Collections" columns=${columnsOf(place)} items=${rows} />`
    }`;
}

/** Shows the form for the missing collection once the relay is loaded. */
function MissingForm({
  relay,
  wanted,
  ...form
}: {
  place: Place;
  relay: string;
  wanted: string;
  onClose: () => void;
  onMade: (name: string) => void;
}): View {
  const { data, error } = useLoad<{ relay: Relay }>(apiPath(form.place, "relays", relay));
  if (data === undefined && error === null) return null;
  const { actions } = (data?.relay.definition ?? { actions: [] }) as {
    actions: { collection?: unknown; data?: object }[];
  };
  const written = actions.filter(({ collection }) => collection === wanted);
  const fields = [...new Set(written.flatMap((action) => Object.keys(action.data ?? {})))];
  return html`<${CollectionForm} ...${form} collection=${null} wanted=${{ name: wanted, fields: fields.map((name) => ({ name })) }} />`;
}

function columnsOf(place: Place): Column<Row>[] {
  return [
    {
      name: "collection",
      title: "Collection",
      priority: 1,
      size: "name",
      cell: ({ name }) => html`<a class="clip" data-row href=${pagePath(place, "records", name)}>${name}</a>`,
    },
    {
      name: "kind",
      title: "Kind",
      priority: 2,
      cell: ({ kind }) =>
        html`<span class="clip">${kind} <span class="quiet">· ${KIND_WORDS[kind]}</span></span>`,
    },
    {
      name: "fields",
      title: "Fields",
      priority: 3,
      cell: ({ fields }) => {
        const names = fieldNames(fields);
        return html`<span class="clip" title=${names.join(", ")}>${formatCount(names.length, "field")} <span class="quiet">${names.join(", ")}</span></span>`;
      },
    },
    timeColumn("time", "Changed", 2, ({ updatedAt }) => updatedAt),
  ];
}
