/**
 * Page to which the OpenID provider sends the browser back. The page removes the response from the address at once and sends it to the service, which
 * completes the sign-in. A confirmation opens in its own tab and tells the other tabs.
 */
import { useEffect, useState } from "preact/hooks";
import { call, sentenceOf } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { navigate } from "../base/route.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { CONFIRMED, notifyConfirmed } from "./provider-signin.ts";
import { enterSession } from "./session.ts";
import { SigninCard } from "./signin-card.ts";

const PATH = "/signin/oidc";
let taken = "";

/** Returns the provider's response. A second render must find it too. */
function takeResponse(): string {
  if (location.search !== "") {
    taken = location.search;
    history.replaceState(null, "", PATH);
  }
  return taken;
}

export function ProviderPage(): View {
  const [response] = useState(takeResponse);
  const [error, setError] = useState<string | null>(null);
  const [isConfirmed, setConfirmed] = useState(false);
  useEffect(() => {
    if (response === "") return navigate("/", { replace: true });
    taken = "";
    call<{ returnTo: string }>("POST", "/api/session/oidc", { response })
      .then(async ({ returnTo }) => {
        if (returnTo === CONFIRMED) {
          notifyConfirmed();
          return setConfirmed(true);
        }
        await enterSession();
        navigate(returnTo, { replace: true });
      })
      .catch((thrown) => setError(sentenceOf(thrown)));
  }, []);
  if (isConfirmed)
    return html`<${SigninCard} title="You are confirmed">
      <p role="status">Close this tab and go back to the dashboard, which continues.</p>
    <//>`;
  if (error === null) return html`<${SigninCard} title="Signing you in…" />`;
  return html`<${SigninCard} title="The sign-in did not work">
    <${Notice} kind="bad"><${Sentence} text=${error} /><//>
    <p><a href="/">Sign in again</a></p>
  <//>`;
}
