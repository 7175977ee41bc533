/** One relay: what it does, where it is called, its secrets, problems, events and definition. */

import { useState } from "preact/hooks";
import { RelayCalls } from "../call/relay-calls.ts";
import { BulkReplayLine } from "../event/bulk-progress.ts";
import { EventTable } from "../event/event-table.ts";
import type { EventItem, Relay, SavedRelay } from "../ground/answer.ts";
import { call, sentenceOf, writeQuery } from "../ground/api.ts";
import { html, type View } from "../ground/html.ts";
import type { PageProps } from "../ground/page.ts";
import { apiPath, type Place, pagePath } from "../ground/place.ts";
import { useList } from "../ground/use-list.ts";
import { useLoad } from "../ground/use-load.ts";
import { CopyButton } from "../part/copy-button.ts";
import { Dialog } from "../part/dialog.ts";
import { Icon } from "../part/icon.ts";
import { ErrorState, Notice, Skeleton } from "../part/notice.ts";
import { PageHead } from "../part/page-head.ts";
import { SecretOnce } from "../part/secret-once.ts";
import { Sentence } from "../part/sentence.ts";
import { StateMark } from "../part/state-mark.ts";
import { Ago } from "../part/time.ts";
import { tellDone, tellFailed } from "../part/toast.ts";
import { useSend } from "../part/use-send.ts";
import { WarningList } from "../part/warning-list.ts";
import { RelayBar, sayCounts, totalOf } from "./relay-bar.ts";
import { RelayDefinition } from "./relay-definition.ts";
import { RelayDelete } from "./relay-delete.ts";
import { secretsOf } from "./relay-made.ts";
import { RelayOrigin } from "./relay-origin.ts";
import { RelaySecrets } from "./relay-secret.ts";
import { sayAction } from "./relay-words.ts";

const REFRESH_MS = 5_000;
const EVENTS_MS = 2_000;
const SHOWN_EVENTS = 8;

export function RelayPage({ place, params }: PageProps): View {
  const name = params.name ?? "";
  const path = apiPath(place, "relays", name);
  const { data, error, reload, put } = useLoad<{ relay: Relay }>(path, REFRESH_MS);
  const [isDeleting, setDeleting] = useState(false);
  const [saved, setSaved] = useState<SavedRelay | null>(null);
  const [isMoving, setMoving] = useState(false);
  const back = { back: "Relays", backTo: pagePath(place, "relays") };
  if (data === undefined) {
    return html`<${PageHead} title=${name} ...${back} />
      ${error === null ? html`<${Skeleton} />` : html`<${ErrorState} error=${error} onRetry=${reload} />`}`;
  }
  const { relay } = data;
  const move = async (): Promise<void> => {
    const verb = relay.state === "active" ? "pause" : "resume";
    setMoving(true);
    try {
      put(await call<{ relay: Relay }>("POST", apiPath(place, "relays", name, verb), {}));
      tellDone(`${verb === "pause" ? "Paused" : "Resumed"} ${name}.`);
    } catch (thrown) {
      tellFailed(sentenceOf(thrown));
    }
    setMoving(false);
  };
  const take = (answer: SavedRelay): void => {
    put({ relay: answer.relay });
    setSaved(answer);
  };
  const secrets = saved === null ? [] : secretsOf(saved);
  return html`<${PageHead} title=${name} ...${back} aside=${html`<${StateMark} state=${relay.state} />`}>
      <button type="button" disabled=${isMoving} onClick=${move}>
        <${Icon} name=${relay.state === "active" ? "pause" : "play"} size=${14} />
        ${relay.state === "active" ? "Pause" : "Resume"}</button>
      <button type="button" class="quiet-danger" onClick=${() => setDeleting(true)}>
        <${Icon} name="trash" size=${14} />Delete</button>
    <//>
    <${BulkReplayLine} place=${place} relay=${name} />
    <p class="lead">${sentence(relay.triggerInWords)}:</p>
    <ol class="steps">${relay.definition.actions.map((action, at) => html`<li key=${at}>${sayAction(action)}</li>`)}</ol>
    ${error !== null && html`<${Notice} kind="warn">${error} What you see is from before.<//>`}
    ${
      relay.state === "paused" &&
      html`<${Notice} kind="warn">Paused: ${relay.trigger === "schedule" ? "ticks are not recorded." : "what arrives is recorded and waits until you resume it."}
      <//>`
    }
    ${relay.problems.map(
      ({ code, message }) => html`<${Notice} key=${code} kind="bad"><b>${code}
      </b> <${Sentence} text=${message} /><//>`,
    )}
    <${WarningList} warnings=${saved?.warnings ?? []} />
    <div class="columns">
      <div class="column-main">
        <${RelayEvents} place=${place} name=${name} trigger=${relay.trigger} />
        ${relay.trigger === "receiver" && html`<${RelayCalls} place=${place} name=${name} />`}
        <${RelayDefinition} key=${relay.id} place=${place} relay=${relay} onSaved=${take} />
      </div>
      <div class="column-side">
        ${
          relay.receiverUrl !== undefined &&
          html`<section class="card" aria-label="Receiver URL"><h2>Receiver URL</h2><code class="wrap">
            ${relay.receiverUrl}</code><${CopyButton} text=${relay.receiverUrl} label="Copy receiver URL" />
            </section>`
        }
        ${
          relay.nextTick !== undefined &&
          html`<section class="card" aria-label="Next tick"><h2>Next tick</h2><p><${Sentence} text=${relay.nextTick.message} /></p></section>`
        }
        <${RelaySecrets} place=${place} relay=${relay} onChanged=${reload} />
        <section class="card" aria-label="Last 24 hours"><h2>Last 24 hours</h2>
          <${RelayBar} counts=${relay.last24h} most=${totalOf(relay.last24h)} /><p class="quiet">
          ${sayCounts(relay.last24h)}</p></section>
        <section class="card" aria-label="Origin"><h2>Origin</h2><p><${RelayOrigin} origin=${relay.origin} /></p>
          <p class="quiet">created <${Ago} at=${relay.createdAt} /></p></section>
      </div>
    </div>
    ${isDeleting && html`<${RelayDelete} place=${place} relay=${relay} onClose=${() => setDeleting(false)} />`}
    ${
      secrets.length > 0 &&
      html`<${Dialog} title="The save made a new secret" onClose=${() => setSaved(null)} mustAnswer>
        <${SecretOnce} secrets=${secrets} />
        <div class="dialog-actions">
          <button type="button" class="primary" onClick=${() => setSaved(null)}>I have stored it</button></div><//>`
    }`;
}

function RelayEvents({
  place,
  name,
  trigger,
}: {
  place: Place;
  name: string;
  trigger: Relay["trigger"];
}): View {
  const query = writeQuery({ relay: name });
  const events = useList<EventItem>(
    apiPath(place, "events") + writeQuery({ relay: name, limit: SHOWN_EVENTS }),
    EVENTS_MS,
  );
  return html`<section class="block" aria-label="Events">
    <div class="block-head"><h2>Events</h2><div class="page-actions">
      ${trigger !== "data_change" && place.environment !== "production" && html`<${TestEvent} place=${place} name=${name} />`}
      <a class="button" href="${pagePath(place, "events")}${query}">All events</a></div></div>
    ${
      events.items === undefined
        ? events.error === null
          ? html`<${Skeleton} rows=${3} />`
          : html`<${Notice} kind="bad">${events.error}<//>`
        : events.items.length === 0
          ? html`<p class="none">Nothing has arrived yet.</p>`
          : html`<${EventTable} place=${place} events=${events.items.slice(0, SHOWN_EVENTS)} withRelay=${false} />`
    }
  </section>`;
}

/** Sends one that is signed here, or a tick; it has every effect, so production has no such button. */
function TestEvent({ place, name }: { place: Place; name: string }): View {
  const { isSending, send } = useSend();
  const sendOne = () =>
    send({
      method: "POST",
      path: apiPath(place, "relays", name, "test-event"),
      changes: [apiPath(place, "events")],
      done: "A test event was sent; what it does appears here.",
      tellsRefusal: true,
    });
  return html`<button type="button" disabled=${isSending} title="It has every effect that a real one has"
    onClick=${() => void sendOne()}>${isSending ? "Sending…" : "Send a test event"}</button>`;
}

function sentence(words: string): string {
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}
