/** The secrets of a relay: the sender's, the previous one during the overlap period, and the one that signs the relay's own calls. */
import { Type } from "typebox";
import { MAX_SECRET_OVERLAP_SECONDS } from "../../base/limit.ts";
import { fields, oneOf, orNull, time } from "../../base/schema.ts";
import {
  endOverlap,
  endSigningOverlap,
  prepareSecret,
  readSecretSlot,
  rotateSigningSecret,
  storeSecret,
} from "../../rules/relay/secret-rotation.ts";
import { environmentRoute } from "../http/route.ts";
import { relayContext } from "./relay-context.ts";

const overlapSeconds = Type.Integer({
  minimum: 0,
  maximum: MAX_SECRET_OVERLAP_SECONDS,
  description: `the seconds that the old secret stays valid, an integer from 0 to ${MAX_SECRET_OVERLAP_SECONDS} (7 days)`,
});

export const relaySecretRoutes = [
  environmentRoute({
    method: "PUT",
    path: "/relays/:name/secret",
    needs: "edit_settings",
    summary:
      "Stores the sender's secret or public key. Without a value, it creates a new secret. An overlap period keeps the old secret valid.",
    body: fields({
      value: Type.Optional(orNull(Type.String({ description: "the value that the sender shows" }))),
      overlapSeconds: Type.Optional(overlapSeconds),
    }),
    answer: Type.Object({ receiverSecret: Type.Optional(Type.String()), previousUntil: Type.Optional(time) }),
    async handle(call) {
      const { deps, environment, origin, params, body } = call;
      const context = relayContext(call);
      const slot = await deps.store.read((tx) => readSecretSlot(tx, environment.id, params.name));
      const prepared = prepareSecret(slot, body.value ?? null, deps.sealer, context.nowMs);
      return await deps.store.write(origin, (tx) =>
        storeSecret(tx, context, prepared, body.overlapSeconds ?? 0),
      );
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/relays/:name/previous-secret",
    needs: "edit_settings",
    summary:
      "Ends the overlap period of a rotation now. The previous secret stops working; with kind=signing, the previous signing secret.",
    query: fields({
      kind: Type.Optional(oneOf(["receiver", "signing"])),
    }),
    answer: null,
    write: (tx, call) =>
      call.query.kind === "signing"
        ? endSigningOverlap(tx, relayContext(call), call.params.name)
        : endOverlap(tx, relayContext(call), call.params.name),
  }),
  environmentRoute({
    method: "PUT",
    path: "/relays/:name/signing-secret",
    needs: "edit_settings",
    summary:
      "Creates a new signing secret, which signs the next outbound call. During an overlap period, calls also carry a signature of the old one.",
    body: fields({ overlapSeconds: Type.Optional(overlapSeconds) }),
    answer: Type.Object({ signingSecret: Type.String(), previousUntil: Type.Optional(time) }),
    write: (tx, call) =>
      rotateSigningSecret(tx, relayContext(call), call.params.name, call.body.overlapSeconds ?? 0),
  }),
];
