/** List of people who stopped mails of the kind `event` with the link in such a mail. The owner can allow them again. */
import type { MailStopView } from "../../src/platform/mail/mail-stop.ts";
import type { Page } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { EmptyState, LoadingState } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { type Column, Table } from "../component/table.ts";
import { timeColumn } from "../component/time-column.ts";
import { useSend } from "../component/use-send.ts";

type Stop = MailStopView & { id: string };

export function MailStopList({ place }: { place: Place }): View {
  const path = apiPath(place, "mail", "stops");
  const { data, error, reload } = useLoad<Page<MailStopView>>(`${path}?limit=200`, 30_000);
  const { send, isSending } = useSend();
  if (data === undefined) return html`<${LoadingState} error=${error} rows=${3} onRetry=${reload} />`;
  if (data.items.length === 0)
    return html`<${EmptyState} icon="mail" title="No one unsubscribed"><p>Each event mail has an unsubscribe link. People who used it appear here. They still get account mail.</p><//>`;
  const allow = ({ person, email }: Stop) =>
    send({
      method: "PUT",
      path: apiPath(place, "persons", person, "mail-stop"),
      body: { stopped: false },
      changes: [path],
      done: `${email} gets event mail again.`,
      tellsRefusal: true,
    });
  const columns: Column<Stop>[] = [
    {
      name: "person",
      title: "Person",
      priority: 1,
      cell: ({ person, email }) =>
        html`<a data-row href=${pagePath(place, "people", person)}><${SafeText} text=${email} limit=${80} /></a>`,
    },
    timeColumn("time", "Stopped", 2, ({ stoppedAt }) => stoppedAt),
    {
      name: "end",
      title: "",
      priority: 1,
      size: "name",
      cell: (stop) =>
        html`<button data-needs="act_on_people" type="button" disabled=${isSending} aria-label="Allow event mail: ${stop.email}" onClick=${() => void allow(stop)}>Allow event mail</button>`,
    },
  ];
  return html`<section aria-label="Event mail off"><p class="tab-lead">These people used the unsubscribe link in an event mail. They get no event mail until you allow it again.</p>
    <${Table} label="Unsubscribed people" columns=${columns} items=${data.items.map((stop) => ({ ...stop, id: stop.person }))} /></section>`;
}
