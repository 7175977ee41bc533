/** Page that creates an app on a server. A new server shows it first. */
import { call } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { pagePath } from "../base/place.ts";
import { navigate } from "../base/route.ts";
import { type App, loadSession } from "./session.ts";
import { SigninCard } from "./signin-card.ts";
import { SigninForm } from "./signin-form.ts";

export function NewAppPage({ isFirst }: { isFirst: boolean }): View {
  return html`<${SigninCard} title=${isFirst ? "Name your first app" : "New app"}>
    <p>An app has a development and a production environment, each with its own relays, events, people and keys.</p>
    <${SigninForm} button="Create the app" fields=${[{ name: "name", label: "Name", type: "text", autocomplete: "off", hint: "Example: Shop" }]}
      onSend=${async ({ name }: Record<string, string>) => {
        const made = await call<{ app: App }>("POST", "/api/apps", { name });
        await loadSession();
        navigate(pagePath({ app: made.app.id, environment: "development" }, "home"), { replace: true });
      }} />
    ${!isFirst && html`<p><a href="/">Back to the dashboard</a></p>`}
  <//>`;
}
