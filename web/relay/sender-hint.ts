/** Hints about the secret next to its field: where the sender's console shows it. */
import type { SenderView } from "../../src/rules/senders/sender-view.ts";
import type { SavedRelay } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Sentence } from "../component/sentence.ts";
import { needsIssuedSecret } from "./paste-secret.ts";
import { RelayCreated } from "./relay-created.ts";
import { SenderPlaces, senderPath } from "./sender-choice.ts";

const FROM_WORDS = {
  sender: "Paste it here, because the sender does not know a secret that Relay generates.",
  relay: "Leave this field empty: Relay generates the secret and shows it once.",
  either: "Leave this field empty if Relay must generate the secret.",
};

/** Shows the hint for the sender that a new relay starts from. */
export function SecretHint({ name }: { name: string }): View {
  const sender = useLoad<{ sender: SenderView }>(senderPath(name)).data?.sender;
  if (sender === undefined) return null;
  return html`<small>${sender.title}: <${Sentence} text=${sender.secret.where} /> ${FROM_WORDS[sender.secret.from]}</small>`;
}

/** Shows the remaining steps at the sender after the relay was created. */
export function MadeFromSender({
  place,
  saved,
  name,
}: {
  place: Place;
  saved: SavedRelay;
  name: string;
}): View {
  const sender = useLoad<{ sender: SenderView }>(senderPath(name)).data?.sender;
  const steps = sender?.steps ?? [];
  // The page has a card for a secret that the sender makes, unless the user pasted the secret before.
  const isPasted = ["pasted", "public_key"].includes(saved.relay.secret.kind);
  const todo =
    isPasted || needsIssuedSecret(saved.relay)
      ? steps.filter((step) => !step.endsWith(sender?.secret.where ?? ""))
      : steps;
  return html`<${RelayCreated} place=${place} saved=${saved} steps=${todo} isKnownSender />`;
}

/** Shows where the sender of an existing relay has its URL and secret. Shows nothing for an unknown sender. */
export function KnownSender({ place, relay }: { place: Place; relay: string }): View {
  const sender = useLoad<{ sender: SenderView | null }>(apiPath(place, "relays", relay, "sender")).data
    ?.sender;
  if (sender === undefined || sender === null) return null;
  const { title, docs } = sender;
  return html`<div class="fact"><h3>At ${title}</h3><${SenderPlaces} sender=${sender} />
    <p class="quiet"><a href=${docs} target="_blank" rel="noreferrer noopener">${title}’s own documentation</a></p></div>`;
}
