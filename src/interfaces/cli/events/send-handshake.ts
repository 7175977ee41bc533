/** Sends the handshake that a relay's sender sends when the URL is registered (`relay send --handshake`), and shows the answer. */
import { randomBytes } from "node:crypto";
import { writeJson } from "../../../base/json.ts";
import { requireRelay } from "../../../rules/relay/relay.ts";
import type { ReceiverTrigger } from "../../../rules/trigger/receiver.ts";
import { findHandshake, type NamedHandshake } from "../../../rules/verify/handshake.ts";
import { bindScheme } from "../../../rules/verify/registry.ts";
import { CommandFailure, type Input } from "../command.ts";
import { openSealerHere, withEnvironment } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { hasDatabase } from "./send-local.ts";

/** The receiver to send to, with the secret that signs. */
export interface SendTarget {
  trigger: ReceiverTrigger;
  url: string;
  /** The receiver secret, or the sender's private key. */
  secret: string;
  /** The environment of the relay in the data directory, or null if the relay is not there. */
  environmentId: number | null;
  /** The receiver that the relay follows; absent for others. */
  source?: string;
}

/** Builds the request, signed if the sender signs it. */
export async function makeHandshakeCall(
  name: string,
  { trigger: { verify }, url, secret }: SendTarget,
  input: Input,
  io: Io,
): Promise<{ url: string; init: RequestInit }> {
  const handshake = findHandshake(verify);
  const scheme = bindScheme(verify);
  if (handshake === null || scheme === null)
    throw new CommandFailure(
      "invalid_input",
      `The definition of ${name} has no handshake: add verify.handshake, such as "handshake": "slack".`,
    );
  const token = await findVerifyToken(name, handshake, input, io);
  const { method, search, body } = handshake.sample(randomBytes(16).toString("hex"), token);
  if (body === null) return { url: `${url}${search}`, init: { method } };
  const bytes = Buffer.from(writeJson(body));
  const draft = { body: bytes, contentType: "application/json", receiverUrl: url, nowMs: io.clock.now() };
  const signed = scheme.sign(secret, draft);
  return { url, init: { method, headers: signed.headers, body: signed.body as BodyInit } };
}

/** Returns the verify token, or an empty string if the handshake needs none. */
async function findVerifyToken(
  name: string,
  { byToken }: NamedHandshake,
  input: Input,
  io: Io,
): Promise<string> {
  if (byToken !== true) return "";
  if (!hasDatabase(input, io))
    throw new CommandFailure(
      "invalid_input",
      "The server's own key creates the relay's verify token: run this command on the machine with its data directory.",
    );
  return await withEnvironment(input, io, async (store, { id }) => {
    const row = await store.read((tx) => requireRelay(tx, id, name));
    return (await openSealerHere(store, input, io)).verifyToken(row.id);
  });
}
