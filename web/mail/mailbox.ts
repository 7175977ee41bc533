/** Mail that was sent, or in local development kept here instead of being sent. It is shown as text, never as markup. */

import type { Page } from "../ground/answer.ts";
import { html, type View } from "../ground/html.ts";
import type { PageProps } from "../ground/page.ts";
import { apiPath, type Place, pagePath } from "../ground/place.ts";
import { useLoad } from "../ground/use-load.ts";
import { useOlder } from "../ground/use-older.ts";
import { EmptyState, ErrorState, Notice, Skeleton } from "../part/notice.ts";
import { OlderButton } from "../part/older-button.ts";
import { PageHead } from "../part/page-head.ts";
import { SafeText } from "../part/safe-text.ts";
import { StateMark } from "../part/state-mark.ts";
import { Ago } from "../part/time.ts";

interface Email {
  id: string;
  to: string;
  from: string;
  kind: string;
  subject: string;
  text: string;
  state: "intended" | "sent" | "failed" | "mailbox" | "unknown";
  message: string | null;
  relay: string | null;
  eventId: string | null;
  createdAt: string;
}

const STATES: Readonly<Record<Email["state"], readonly [look: string, word: string]>> = {
  intended: ["queued", "Being sent"],
  sent: ["done", "Sent"],
  failed: ["failed", "Not sent"],
  mailbox: ["done", "Kept here"],
  unknown: ["failed", "Unknown"],
};

export function MailboxPage({ place }: PageProps): View {
  const path = apiPath(place, "emails");
  const first = useLoad<Page<Email>>(path, 5_000);
  const older = useOlder<Email>(path, first.data);
  return html`<${PageHead} title="Mail" />
    ${
      first.data === undefined
        ? first.error === null
          ? html`<${Skeleton} />`
          : html`<${ErrorState} error=${first.error} onRetry=${first.reload} />`
        : older.items.length === 0
          ? html`<${EmptyState} icon="mail" title="No mail yet">
            <p>What a relay mails with <code>email_person</code> appears here${place.environment === "local" && " instead of being sent"}.</p>
            <//>`
          : html`<ul class="mails">
            ${older.items.map((email) => html`<${Mail} key=${email.id} place=${place} email=${email} />`)}</ul>
            <${OlderButton} older=${older} none="These are all." />`
    }`;
}

function Mail({ place, email }: { place: Place; email: Email }): View {
  const [look, word] = STATES[email.state];
  return html`<li><details><summary data-row>
      <span class="mail-subject"><${SafeText} text=${email.subject} limit=${200} /></span>
        <span class="mail-to clip">to <${SafeText} text=${email.to} limit=${80} /></span>
        <${StateMark} state=${look} word=${word} /><${Ago} at=${email.createdAt} />
    </summary>
    <div class="mail-body">
      ${email.message !== null && html`<${Notice} kind="warn"><${SafeText} text=${email.message} /><//>`}
      <p class="quiet">from <${SafeText} text=${email.from} limit=${80} />
        ${
          email.relay !== null &&
          html` · by relay <a href=${pagePath(place, "relays", email.relay)}>${email.relay}
        </a>`
        }${email.eventId !== null && html` · <a href=${pagePath(place, "events", email.eventId)}>its event</a>`}
        </p>
      <pre class="mail-text"><${SafeText} text=${email.text} limit=${10_000} /></pre>
    </div></details></li>`;
}
