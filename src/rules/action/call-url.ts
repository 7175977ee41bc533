/**
 * call_url: posts the service's signed notice and reads the response. Every attempt and replay sends it again with the same id, so the called server
 * can deduplicate. A save checks the URL's rules, except those that depend on the server: http to localhost may be saved, because definitions move
 * from local development to a server, where the run rejects it (`https_only`). A URL that breaks a rule is a permanent failure. A failed name
 * resolution can succeed at the next attempt. Source: the specification's "Outbound" and "Outbound call body".
 */
import { type Static, Type } from "typebox";
import { parseJson, writeJson } from "../../base/json.ts";
import { failFinally, failForNow } from "../../base/outcome.ts";
import type { Problem } from "../../base/refusal.ts";
import { formatCount } from "../../base/text.ts";
import { checkCallUrl, MAX_CALL_URL_CHARS, readCallTarget } from "../../platform/outbound/call-target.ts";
import { type CallOutcome, previewRequest } from "../../platform/outbound/caller.ts";
import { readStandardKey, type UnsignedNotice } from "../../platform/outbound/notice-signature.ts";
import { EXAMPLE_SIGNING_SECRET } from "../../platform/secret/secret-text.ts";
import { type ActionOutcome, type ActionRun, type SendingAction, toPostedResult } from "./contract.ts";

const shape = Type.Object(
  {
    type: Type.Literal("call_url", { description: "Calls a URL.", expects: '"call_url"' }),
    url: Type.String({
      minLength: 1,
      maxLength: MAX_CALL_URL_CHARS,
      description: "The https URL that receives the signed notice.",
      expects: `an https address of 1 to ${formatCount(MAX_CALL_URL_CHARS)} characters`,
    }),
    standardWebhooks: Type.Optional(
      Type.Boolean({
        description:
          "Adds the headers webhook-id, webhook-timestamp and webhook-signature, which every Standard Webhooks library verifies.",
        expects: "true or false",
      }),
    ),
  },
  { additionalProperties: false, description: "Posts a signed notice to your server.", expects: "an object" },
);

export type CallUrl = Static<typeof shape>;

/** Everything the call needs: the exact text to post, and the secret that signs it. */
interface CallPlan extends UnsignedNotice {
  url: string;
}

export const callUrl: SendingAction<CallUrl, CallPlan, CallOutcome> = {
  type: "call_url",
  title: "Call a URL",
  effect: "calls",
  shape,
  sends: true,
  repeats: true,
  needsPerson: () => false,
  check(action): Problem[] {
    const broken = checkCallUrl(action.url, { local: true, ownHosts: [] });
    return broken === null ? [] : [{ field: "url", message: broken.message }];
  },
  references: () => [],
  target: (action) => action.url,
  examples: [
    { type: "call_url", url: "https://example.com/relay" },
    { type: "call_url", url: "http://localhost:3000/relay" },
    { type: "call_url", url: "https://example.com/relay", standardWebhooks: true },
  ],

  async intend(_tx, action, run) {
    const { signingSecret, previousSigningSecret: previous } = run;
    if (signingSecret === null) return failForNow("no_signing_secret", NO_SIGNING_SECRET);
    const secrets = { signingSecret, ...(previous === null ? {} : { previousSecret: previous }) };
    const plan = { url: action.url, body: writeNotice(run), ...secrets };
    if (action.standardWebhooks !== true) return { plan };
    // A save refuses such a secret, but an older release that ran on this data could have made one.
    if (readStandardKey(signingSecret) === null) return failForNow("no_signing_secret", OTHER_SECRET);
    return { plan: { ...plan, webhookId: run.event.id } };
  },

  send(plan, run, ports) {
    // Each result before this one is of one earlier action.
    const traceparent = ports.traceparentOf?.(run.event.id, run.event.run, run.results.length);
    return ports.caller.call({
      ...plan,
      local: run.local,
      ...(traceparent === undefined ? {} : { traceparent }),
    });
  },

  preview({ url, previousSecret: _, ...signed }, { local, nowMs }) {
    const { body } = signed;
    const notice = parseJson(body);
    const target = readCallTarget(url, { local, ownHosts: [] });
    if ("code" in target)
      return { sends: { url, notice }, refused: failFinally(target.code, target.message) };
    // A reader could send a request with the relay's own signature, so an example secret signs.
    const exampleSecret = EXAMPLE_SIGNING_SECRET;
    const request = previewRequest(target.url, { ...signed, signingSecret: exampleSecret }, nowMs);
    const headers = { ...request.headers };
    return { sends: { ...request, headers, body, notice, exampleSecret }, refused: null };
  },

  async settle(_tx, _plan, sent) {
    return evaluateCall(sent);
  },
};

/** Writes the notice once, so that the posted text is the signed text. Integers of the payload keep all digits. */
function writeNotice(run: ActionRun): string {
  const { event, relay, person } = run;
  return writeJson({
    id: event.id,
    relay: { id: relay.id, name: relay.name },
    trigger: event.trigger,
    event: event.payload,
    ...(event.truncated ? { truncated: true } : {}),
    person: person === null ? null : { id: person.id, email: person.email },
    results: run.results.map(toPostedResult),
  });
}

function evaluateCall(sent: CallOutcome): ActionOutcome {
  if (sent.kind === "refused")
    return { outcome: "failed", code: sent.code, message: sent.message, final: sent.final === true };
  const { request } = sent;
  if (sent.kind === "unreachable")
    return { ...failForNow(sent.code, sent.message), ...(request === undefined ? {} : { request }) };
  const { status, headers, body } = sent;
  const exchange = {
    ...(request === undefined ? {} : { request }),
    answer: { status, ...(headers === undefined ? {} : { headers }), body },
  };
  if (sent.ok) return { outcome: "done", ...exchange };
  const isRedirect = sent.status >= 300 && sent.status < 400;
  const failure = isRedirect
    ? failForNow(
        "redirect",
        `The URL answered with a redirect (${sent.status}), and redirects are not followed: set url to the final address.`,
      )
    : failForNow("http_error", `The URL answered ${sent.status}: only a 2xx status is a success.`);
  return { ...failure, ...exchange };
}

const NO_SIGNING_SECRET =
  "The relay has no signing secret, so the call cannot be signed: create one with relay relays rotate-secret <name> --signing, then replay.";
const OTHER_SECRET =
  "The action asks for Standard Webhooks headers, and the relay's signing secret does not have their form: create another with relay relays rotate-secret <name> --signing, then replay.";
