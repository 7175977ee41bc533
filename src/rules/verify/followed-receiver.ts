/**
 * The scheme `receiver`: another receiver relay of the environment, the source, verifies each request. The relay then has no URL and no secret.
 * It verifies nothing itself: rules/relay/source.ts gives it the source's scheme. Source: sources, "Following a receiver".
 */
import { Type } from "typebox";
import { RELAY_NAME } from "../../base/shape.ts";
import { rejectEveryRequest, type Scheme } from "./contract.ts";

export const FOLLOWED_RECEIVER = "receiver";

interface FollowedReceiverFields {
  scheme: typeof FOLLOWED_RECEIVER;
  /** The name of the source. */
  receiver: string;
}

export const followedReceiver: Scheme<FollowedReceiverFields> = {
  name: FOLLOWED_RECEIVER,
  title: "Another receiver relay",
  shape: Type.Object(
    {
      scheme: Type.Literal(FOLLOWED_RECEIVER, {
        description: "The requests that another receiver relay of the environment verifies.",
        expects: '"receiver"',
      }),
      receiver: Type.String({
        pattern: RELAY_NAME.source,
        description: "The name of the receiver relay whose verified requests this relay gets.",
        expects: 'the name of a receiver relay of the environment, such as "stripe"',
        names: "relay",
      }),
    },
    { additionalProperties: false },
  ),
  check: () => [],
  secretNeed: () => "source",
  bodies: "json_or_form",
  signsEvent: () => true,
  prepare: () => rejectEveryRequest("the relay that it follows verifies its requests"),
  sign: () => {
    throw new Error("The relay that it follows signs the request.");
  },
  examples: [{ scheme: FOLLOWED_RECEIVER, receiver: "stripe" }],
};
