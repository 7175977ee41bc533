/** The collections of an environment. */
import type { Page } from "../ground/answer.ts";
import { sayCount } from "../ground/count-words.ts";
import { html, type View } from "../ground/html.ts";
import type { PageProps } from "../ground/page.ts";
import { apiPath, type Place, pagePath } from "../ground/place.ts";
import { useLoad } from "../ground/use-load.ts";
import { EmptyState, ErrorState, Skeleton } from "../part/notice.ts";
import { PageHead } from "../part/page-head.ts";
import { type Column, Table } from "../part/table.ts";
import { Ago } from "../part/time.ts";
import { type Collection, fieldNames } from "./shape.ts";

const KIND_WORDS = {
  shared: "anyone signed in reads",
  private: "only its owner reads",
  addressed: "written by the app for one person",
  direct: "from person to person",
} as const;

type Row = Collection & { id: string };

export function CollectionListPage({ place }: PageProps): View {
  const { data, error, reload } = useLoad<Page<Collection>>(`${apiPath(place, "collections")}?limit=200`);
  const rows = (data?.items ?? [])
    .map((one): Row => ({ ...one, id: one.name }))
    .toSorted((left, right) => (left.name < right.name ? -1 : 1));
  return html`<${PageHead} title="Records" />
    ${
      data === undefined
        ? error === null
          ? html`<${Skeleton} rows=${4} />`
          : html`<${ErrorState} error=${error} onRetry=${reload} />`
        : rows.length === 0
          ? html`<${EmptyState} icon="records" title="No collections yet">
            <p>A collection is the shape of records that your app and your relays write. Make one in <code>service/catalog.json</code>, with <code>relay catalog set collection</code>, or with <code>POST …/collections</code>.</p>
            <//>`
          : html`<${Table} label="Collections" columns=${columnsOf(place)} items=${rows} />`
    }`;
}

function columnsOf(place: Place): Column<Row>[] {
  return [
    {
      name: "collection",
      title: "Collection",
      priority: 1,
      size: "name",
      cell: ({ name }) =>
        html`<a class="clip" data-row href=${pagePath(place, "collections", name)}>${name}</a>`,
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
        return html`<span class="clip" title=${names.join(", ")}>${sayCount(names.length, "field")} <span class="quiet">${names.join(", ")}</span></span>`;
      },
    },
    {
      name: "time",
      title: "Changed",
      priority: 2,
      size: "short",
      cell: ({ updatedAt }) => html`<${Ago} at=${updatedAt} />`,
    },
  ];
}
