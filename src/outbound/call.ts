/** The signed call out of the house. See OutboundCaller; the address rules are in address.ts. */

import type { UrlRule } from "./url-rule.ts";

export interface CallRequest {
  url: string;
  /** The exact bytes to post, signed as they are. */
  body: string;
  signingSecret: string;
  /** Local development: http to localhost is allowed. */
  local: boolean;
}

export type CallOutcome =
  /** The URL answered: 2xx is `ok`. `body`: its first 4 KB as text. */
  | { kind: "answered"; ok: boolean; status: number; body: string }
  /** An address rule refused it: https_only, ip_literal, own_host, unresolvable, private_address. */
  | {
      kind: "refused";
      code: UrlRule;
      message: string;
      /** The URL as written breaks the rule, so that no other answer of the name servers mends it. */
      final?: true;
    }
  /** No answer: timeout, connection or TLS failure. */
  | { kind: "unreachable"; code: "timeout" | "connection_failed" | "tls_failed"; message: string };

export interface OutboundCaller {
  /** Posts once, redirects not followed, within 10 seconds, pinned to the address checked. Never throws. */
  call(request: CallRequest): Promise<CallOutcome>;
}
