/** Page of a member who must add a second factor before anything else, because the server requires one. */

import { sentenceOf } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { tellFailed } from "../component/toast.ts";
import { enterSession, type Session, signOut } from "./session.ts";
import { SigninCard } from "./signin-card.ts";
import { TotpSetup } from "./totp-setup.ts";

const tell = (error: unknown): void => tellFailed(sentenceOf(error));

export function EnrollPage({ session }: { session: Session }): View {
  return html`<${SigninCard} title="Add a second factor">
    <p>This server requires a second factor, and <b>${session.owner?.email}</b> has none. Add an authenticator app to continue.</p>
    <${TotpSetup} onDone=${() => void enterSession().catch(tell)} />
    <p><button type="button" class="whole" onClick=${() => void signOut().catch(tell)}>Sign out</button></p>
  <//>`;
}
