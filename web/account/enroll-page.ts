/** Page of a member who must add a second factor before anything else, because the server requires one. */
import { useState } from "preact/hooks";
import { sentenceOf } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { notifyFailed } from "../component/toast.ts";
import { canUsePasskeys } from "./passkey.ts";
import { PasskeySetup } from "./passkey-setup.ts";
import { enterSession, type Session, signOut } from "./session.ts";
import { SigninCard } from "./signin-card.ts";
import { TotpSetup } from "./totp-setup.ts";

const notifyError = (error: unknown): void => notifyFailed(sentenceOf(error));

export function EnrollPage({ session }: { session: Session }): View {
  const [isPasskey, setPasskey] = useState(false);
  const enter = (): void => void enterSession().catch(notifyError);
  return html`<${SigninCard} title="Add a second factor">
    <p>This server requires a second factor, and <b>${session.owner?.email}</b> has none. Add ${isPasskey ? "a passkey" : "an authenticator app"} to continue.</p>
    ${
      isPasskey
        ? html`<${PasskeySetup} onDone=${enter} onCancel=${() => setPasskey(false)} />`
        : html`<${TotpSetup} onDone=${enter} />`
    }
    ${!isPasskey && canUsePasskeys() && html`<button type="button" class="whole" onClick=${() => setPasskey(true)}>Use a passkey instead</button>`}
    <button type="button" class="whole" onClick=${() => void signOut().catch(notifyError)}>Sign out</button>
  <//>`;
}
