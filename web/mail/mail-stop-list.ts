/** List of people who stopped mails of the kind `event` with the link in such a mail. The owner can allow them again. */
import type { MailStopView } from "../../src/platform/mail/mail-stop.ts";
import type { Page } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { EmptyState, NotYet } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { type Column, Table } from "../component/table.ts";
import { timeColumn } from "../component/time-column.ts";
import { useSend } from "../component/use-send.ts";

type Stop = MailStopView & { id: string };

export function MailStopList({ place }: { place: Place }): View {
  const path = apiPath(place, "mail", "stops");
  const { data, error, reload } = useLoad<Page<MailStopView>>(`${path}?limit=200`, 30_000);
  const { send, isSending } = useSend();
  if (data === undefined) return html`<${NotYet} error=${error} rows=${3} onRetry=${reload} />`;
  if (data.items.length === 0)
    return html`<${EmptyState} icon="mail" title="No one stopped mail"><p>Each mail of kind event has a link that stops such mail. People who used it are listed here. Mail about accounts still goes to them.</p><//>`;
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
        html`<button type="button" disabled=${isSending} aria-label="Allow again: ${stop.email}" onClick=${() => void allow(stop)}>Allow again</button>`,
    },
  ];
  return html`<section aria-label="No event mail"><p class="tab-lead">These people stopped mail about events with the link in such a mail. They get none until you allow it again.</p>
    <${Table} label="Who stopped mail" columns=${columns} items=${data.items.map((stop) => ({ ...stop, id: stop.person }))} /></section>`;
}
