/** Shows a person by email address, or as erased. */
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { SafeText } from "./safe-text.ts";

export function PersonLink({ place, id, email }: { place: Place; id: string; email: string | null }): View {
  if (email === null) return html`<span class="clip quiet" title=${id}>erased</span>`;
  return html`<a class="clip" href=${pagePath(place, "people", id)}><${SafeText} text=${email} limit=${100} /></a>`;
}

/** Shows a person of whom only the id is known: by email address once it is loaded, otherwise by the id. */
export function PersonById({ place, id }: { place: Place; id: string }): View {
  const { data } = useLoad<{ person: { email: string | null } }>(apiPath(place, "persons", id));
  const email = data?.person.email ?? null;
  return html`<a class="wrap" href=${pagePath(place, "people", id)} title=${id}>${email === null ? id : html`<${SafeText} text=${email} limit=${100} />`}</a>`;
}
