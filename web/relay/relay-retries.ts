/** Shows how many events of a relay wait for a retry, with a button to retry them now. Shows nothing without any and during a hold. */
import type { RetriesView, TriedEvents } from "../../src/engine/event/retry-now.ts";
import { useHeldAt } from "../alert/hold.ts";
import { formatCount } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { formatWhen, useNow } from "../base/time-words.ts";
import { useLoad } from "../base/use-load.ts";
import { Icon } from "../component/icon.ts";
import { useSend } from "../component/use-send.ts";

const RETRIES_MS = 4_000;

export function RelayRetries({ place, name }: { place: Place; name: string }): View {
  const path = apiPath(place, "relays", name, "retry");
  const isHeld = useHeldAt(place) !== null;
  const retries = useLoad<{ retries: RetriesView }>(path, RETRIES_MS).data?.retries;
  const now = useNow(1_000);
  const { isSending, send } = useSend();
  if (isHeld || retries === undefined || retries.waiting === 0) return null;
  const tryAll = () =>
    send<TriedEvents>({
      method: "POST",
      path,
      changes: [apiPath(place, "events"), path],
      done: ({ tried, stopped }) =>
        `${formatCount(tried, "event")} retried now. The results appear here.${stopped === null ? "" : ` The others were not retried: ${stopped}`}`,
      tellsRefusal: true,
    });
  const { waiting, nextAt } = retries;
  return html`<section class="health" aria-label="Retries">
    <p>${formatCount(waiting, "event")} ${waiting === 1 ? "waits for its" : "wait for their"} retry${nextAt !== null && `, the first ${formatWhen(nextAt, now)}`}.</p>
    <div class="health-ways"><button data-needs="replay" type="button" disabled=${isSending} title="Each retry counts as one of the seven attempts" onClick=${() => void tryAll()}>
      <${Icon} name="play" size=${14} />${isSending ? "Retrying…" : "Retry now"}</button></div>
  </section>`;
}
