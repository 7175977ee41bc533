/** A person by their address; one that was erased by what is left of them, their id. */
import { html, type View } from "../ground/html.ts";
import { type Place, pagePath } from "../ground/place.ts";
import { SafeText } from "./safe-text.ts";

export function PersonLink({ place, id, email }: { place: Place; id: string; email: string | null }): View {
  if (email === null) return html`<span class="clip quiet" title=${id}>erased</span>`;
  return html`<a class="clip" href=${pagePath(place, "people", id)}><${SafeText} text=${email} limit=${100} /></a>`;
}
