/** Card of every page outside the dashboard: a mark, a title and the content. */
import { html, type View } from "../base/html.ts";
import { Icon } from "../component/icon.ts";

export function SigninCard({ title, children }: { title: string; children?: View }): View {
  return html`<main class="signin"><div class="signin-card">
    <span class="mark"><${Icon} name="relays" size=${22} /></span>
    <h1>${title}</h1>
    ${children}
  </div></main>`;
}
