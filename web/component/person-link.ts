/** A person by their address; one that was erased by what is left of them, their id. */
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { SafeText } from "./safe-text.ts";

export function PersonLink({ place, id, email }: { place: Place; id: string; email: string | null }): View {
  if (email === null) return html`<span class="clip quiet" title=${id}>erased</span>`;
  return html`<a class="clip" href=${pagePath(place, "people", id)}><${SafeText} text=${email} limit=${100} /></a>`;
}

/** A person of whom only the id is at hand: by their address once it is loaded, by the id until then and where nothing else is left. */
export function PersonById({ place, id }: { place: Place; id: string }): View {
  const { data } = useLoad<{ person: { email: string | null } }>(apiPath(place, "persons", id));
  const email = data?.person.email ?? null;
  return html`<a class="wrap" href=${pagePath(place, "people", id)} title=${id}>${email === null ? id : html`<${SafeText} text=${email} limit=${100} />`}</a>`;
}
