/**
 * The scheme `shared_token`: the sender puts the secret itself in a header or in the query, and either place is enough. The sender does
 * not sign the event, so the unsigned-event rule applies. Source: the specification's "Verification schemes".
 */
import { Type } from "typebox";
import {
  badSignature,
  rejectEveryRequest,
  type Scheme,
  unmatchedSignature,
  type Verifier,
  type VerifyFields,
} from "./contract.ts";
import { headerNameShape } from "./signature.ts";
import { isSameText } from "./signature-proof.ts";

interface SharedTokenFields {
  scheme: "shared_token";
  header?: string;
  query?: string;
}

const DEFAULT_HEADER = "x-webhook-token";
const DEFAULT_QUERY = "token";

/** Returns the places where the sender can put the token. */
export function tokenPlacesOf(fields: VerifyFields | SharedTokenFields): { header: string; query: string } {
  const { header = DEFAULT_HEADER, query = DEFAULT_QUERY } = fields as SharedTokenFields;
  return { header, query };
}

function prepare(fields: SharedTokenFields, secret: string): Verifier {
  if (secret === "") return rejectEveryRequest("the relay has no secret");
  const { header, query } = tokenPlacesOf(fields);
  const isToken = (given: string): boolean => isSameText(given, secret);
  const other = unmatchedSignature(`the value of header ${header} is not the secret`);
  const missing = badSignature(`the token is neither in header ${header} nor in query parameter ${query}`);
  return {
    verify(received) {
      const inHeader = received.header(header);
      const matches =
        (inHeader !== null && isToken(inHeader)) ||
        (received.search !== "" && new URLSearchParams(received.search).getAll(query).some(isToken));
      if (matches) return { verified: true, onceText: null, expiresAtMs: null, senderEventId: null };
      return inHeader === null ? missing : other;
    },
  };
}

export const sharedToken: Scheme<SharedTokenFields> = {
  name: "shared_token",
  title: "A token in a header or the query",
  shape: Type.Object(
    {
      scheme: Type.Literal("shared_token", {
        description: "The sender puts the secret itself in the request and does not sign the event.",
        expects: '"shared_token"',
      }),
      header: Type.Optional(
        headerNameShape(
          `The header that contains the token, which is safer than the query; ${DEFAULT_HEADER} when absent.`,
        ),
      ),
      query: Type.Optional(
        Type.String({
          pattern: "^[A-Za-z0-9._~-]{1,100}$",
          description: `The query parameter that can contain the token; ${DEFAULT_QUERY} when absent.`,
          expects: "the name of a query parameter: letters, digits and . _ ~ -, at most 100 characters",
        }),
      ),
    },
    { additionalProperties: false },
  ),
  check: () => [],
  secretNeed: () => "shared",
  bodies: "json_or_form",
  signsEvent: () => false,
  prepare,
  sign: (fields, key, draft) => ({
    headers: { "content-type": draft.contentType, [tokenPlacesOf(fields).header]: key },
    body: draft.body,
    search: "",
  }),
  examples: [{ scheme: "shared_token" }, { scheme: "shared_token", header: "authorization" }],
};
