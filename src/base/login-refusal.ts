/** Lists the refusal codes of signing a command in: those that RFC 8628 names, and a few more. They are part of the registry in refusal-code.ts. */
import type { RefusalEntry } from "./command-refusal.ts";

export const LOGIN_REFUSALS = {
  login_capped: {
    status: 429,
    when: "More logins of the command line were begun from an address, or wait for an answer, or more wrong codes were typed, than the limit.",
    todo: "Wait until resetAt; or use a key of the dashboard's Settings with RELAY_URL and RELAY_KEY.",
  },
  login_used: {
    status: 409,
    when: "The login was answered before, or its key was fetched before.",
    todo: "Run relay login again for another code.",
  },
  authorization_pending: {
    status: 400,
    when: "Nobody has allowed or denied the login yet.",
    todo: "Open the address that the command shows, type its code, and allow it; the command goes on by itself.",
  },
  slow_down: {
    status: 400,
    when: "A login was asked for before its interval was over.",
    todo: "Ask again after the interval that the answer names, five seconds longer than before.",
  },
  access_denied: {
    status: 400,
    when: "An owner denied the login in the dashboard.",
    todo: "Run relay login again if it was denied by mistake.",
  },
  expired_token: {
    status: 400,
    when: "The login has ended, or was never begun: its codes work for ten minutes.",
    todo: "Run relay login again for another code.",
  },
} as const satisfies Record<string, RefusalEntry>;
