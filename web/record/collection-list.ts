/** The collections of an environment. */
import type { CollectionView } from "../../src/records/collection.ts";
import type { Page } from "../ground/answer.ts";
import { sayCount } from "../ground/count-words.ts";
import type { Json } from "../ground/exact-json.ts";
import { isObject } from "../ground/exact-json.ts";
import { html, type View } from "../ground/html.ts";
import type { PageProps } from "../ground/page.ts";
import { apiPath, pagePath } from "../ground/place.ts";
import { useLoad } from "../ground/use-load.ts";
import { EmptyState, ErrorState, Skeleton } from "../part/notice.ts";
import { PageHead } from "../part/page-head.ts";
import { Ago } from "../part/time.ts";

export type Collection = Omit<CollectionView, "fields"> & { fields: Json };

const KIND_WORDS = {
  shared: "anyone signed in reads",
  private: "only its owner reads",
  addressed: "written by the app for one person",
  direct: "from person to person",
} as const;

/** The names of a collection's fields, whichever way they are listed. */
export function fieldNames(fields: Json): string[] {
  if (Array.isArray(fields))
    return fields.flatMap((field) => (isObject(field) && typeof field.name === "string" ? [field.name] : []));
  return isObject(fields) ? Object.keys(fields) : [];
}

export function CollectionListPage({ place }: PageProps): View {
  const { data, error, reload } = useLoad<Page<Collection>>(`${apiPath(place, "collections")}?limit=200`);
  return html`<${PageHead} title="Records" />
    ${
      data === undefined
        ? error === null
          ? html`<${Skeleton} rows=${4} />`
          : html`<${ErrorState} error=${error} onRetry=${reload} />`
        : data.items.length === 0
          ? html`<${EmptyState} icon="records" title="No collections yet">
            <p>A collection is the shape of records that your app and your relays write. Make one in <code>service/catalog.json</code>, or with <code>POST …/collections</code>.</p>
            <//>`
          : html`<table class="list"><thead><tr><th scope="col">Collection</th><th scope="col">Kind</th>
            <th scope="col">Fields</th><th scope="col">Changed</th></tr></thead>
            <tbody>${data.items
              .toSorted((left, right) => (left.name < right.name ? -1 : 1))
              .map(
                ({ name, kind, fields, updatedAt }) => html`<tr key=${name}>
                <td class="cell-main"><a data-row href=${pagePath(place, "collections", name)}>${name}</a></td>
                <td>${kind} <span class="quiet">· ${KIND_WORDS[kind]}</span></td>
                <td><span class="clip" title=${fieldNames(fields).join(", ")}>
                  ${sayCount(fieldNames(fields).length, "field")} <span class="quiet">
                  ${fieldNames(fields).join(", ")}</span></span></td>
                <td class="cell-time"><${Ago} at=${updatedAt} /></td></tr>`,
              )}</tbody></table>`
    }`;
}
