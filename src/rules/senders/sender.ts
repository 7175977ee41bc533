/**
 * A sender: how one provider's webhooks are signed, named and set up, as data. One file a sender, one line in registry.ts. Every fact is the
 * provider's own (its documentation or its library), and test/flow/sender.test.ts sends each example through the real receiver.
 */
import type { Json, JsonObject } from "../../base/json.ts";
import type { When } from "../trigger/receiver.ts";
import type { VerifyFields } from "../verify/contract.ts";

export interface Sender {
  /** The file's name, the word on the command line and in an address, and the relay's name to begin with. */
  name: string;
  title: string;
  /** One sentence: what it tells. */
  summary: string;
  verify: VerifyFields;
  /** As the sender really names things; headers are not mappable. */
  map: Readonly<Record<string, string>>;
  /** What the relay to begin with waits for; empty: every event. */
  when: Readonly<When>;
  /** Where the body holds the address of the person that the event is about: what `person_email` would name. null: nowhere. */
  personEmail: string | null;
  secret: {
    /** `sender`: it shows one, or a public key, to be pasted here. `relay`: the service's own is pasted there. `either`: both are possible. */
    from: "sender" | "relay" | "either";
    /** Where its console shows it, or takes it. */
    where: string;
  };
  /** Where its console takes the receiver URL. */
  register: string;
  /** A small event as it is sent, for which `when` holds. */
  example: SenderExample;
  /** What `event_type` reads. */
  eventTypes: readonly { type: string; meaning: string }[];
  pitfalls: readonly string[];
  /** Its own page about this. */
  docs: string;
}

/** `form`: sent as a form post, its fields texts. */
export type SenderExample =
  | { json: JsonObject | readonly Json[] }
  | { form: Readonly<Record<string, string>> };
