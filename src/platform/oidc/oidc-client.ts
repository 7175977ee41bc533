/**
 * Speaks OpenID Connect with the provider, by the package openid-client, which is loaded at the first use. Each request goes through the client for servers
 * that the operator names, with its rules for addresses. The package checks state, issuer of the response, PKCE, nonce, and the ID token with its signature.
 */
import type * as OpenId from "openid-client";
import { type Clock, systemClock } from "../../base/clock.ts";
import { MINUTE_MS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { OperatorClient, OperatorRequestFailed } from "../outbound/operator-client.ts";
import { type Identity, readIdentity } from "./admitted-identity.ts";
import type { Provider } from "./provider.ts";
import type { PendingSignin, SigninSecrets } from "./signin-state.ts";

const MAX_RESPONSE_BYTES = 1_000_000;
const REQUEST_TIMEOUT_MS = 10_000;
/** The time for which the provider's addresses and keys are used again. */
const METADATA_LIFE_MS = 5 * MINUTE_MS;
/** The difference between the clocks of two servers that is tolerated. */
const TOLERATED_SECONDS = 30;

type Configuration = OpenId.Configuration;

/** The result of a sign-in at the provider. */
export interface ProvedIdentity {
  identity: Identity;
  idToken: string;
}

interface OidcClientOptions {
  clock: Clock;
  allowPrivate: readonly string[];
  /** The public origin of this server. */
  baseUrl(): string;
}

export class OidcClient {
  readonly #options: OidcClientOptions;
  #known: { key: string; untilMs: number; configuration: Promise<Configuration> } | null = null;

  constructor(options: OidcClientOptions) {
    this.#options = options;
  }

  /** The address to which the provider sends a browser back. The operator registers it at the provider. */
  get redirectUrl(): string {
    return `${this.#options.baseUrl()}/signin/oidc`;
  }

  /** Asks the provider for its addresses. Throws `oidc_failed`. */
  async discover(provider: Provider): Promise<{ hasSignOut: boolean }> {
    this.#known = null;
    const configuration = await this.#configure(provider);
    return { hasSignOut: configuration.serverMetadata().end_session_endpoint !== undefined };
  }

  /**
   * Returns the address at the provider where the person signs in. `forcesSignin`: the person must sign in there again, although they have a session. Throws
   * `oidc_failed`.
   */
  async makeSigninUrl(provider: Provider, secrets: SigninSecrets, forcesSignin: boolean): Promise<string> {
    const openId = await import("openid-client");
    const configuration = await this.#configure(provider);
    const url = openId.buildAuthorizationUrl(configuration, {
      redirect_uri: this.redirectUrl,
      scope: scopeOf(configuration),
      state: secrets.state,
      nonce: secrets.nonce,
      code_challenge: await openId.calculatePKCECodeChallenge(secrets.verifier),
      code_challenge_method: "S256",
      ...(forcesSignin ? { prompt: "login", max_age: "0" } : {}),
    });
    return url.href;
  }

  /** Exchanges the code of a response for an identity. `response` is the query that the provider appended. Throws `oidc_failed`. */
  async proveIdentity(
    provider: Provider,
    pending: PendingSignin,
    response: string,
    nowMs: number,
  ): Promise<ProvedIdentity> {
    const openId = await import("openid-client");
    const configuration = await this.#configure(provider);
    const url = new URL(this.redirectUrl);
    url.search = response;
    try {
      const tokens = await openId.authorizationCodeGrant(configuration, url, {
        expectedState: pending.state,
        expectedNonce: pending.nonce,
        pkceCodeVerifier: pending.verifier,
        idTokenExpected: true,
        // A person who confirms has to sign in at the provider after this sign-in began.
        ...(pending.sessionId === null ? {} : { maxAge: Math.ceil((nowMs - pending.begunAt) / 1_000) }),
      });
      const claims: Readonly<Record<string, unknown>> & { sub: string } = { sub: "", ...tokens.claims() };
      const isComplete = claims["email"] !== undefined && claims[provider.groupsClaim] !== undefined;
      const hasMore = configuration.serverMetadata().userinfo_endpoint !== undefined;
      const more =
        isComplete || !hasMore
          ? {}
          : await openId.fetchUserInfo(configuration, tokens.access_token, claims.sub);
      const identity = readIdentity({ ...more, ...claims }, provider);
      return { identity, idToken: tokens.id_token ?? "" };
    } catch (error) {
      throw rejectFailure(provider, openId, error);
    }
  }

  /** Returns the address at the provider that ends the person's session there; null if the provider has none. Throws `oidc_failed`. */
  async makeSignOutUrl(provider: Provider, idToken: string | null): Promise<string | null> {
    const openId = await import("openid-client");
    const configuration = await this.#configure(provider);
    if (configuration.serverMetadata().end_session_endpoint === undefined) return null;
    return openId.buildEndSessionUrl(configuration, {
      post_logout_redirect_uri: `${this.#options.baseUrl()}/`,
      ...(idToken === null ? {} : { id_token_hint: idToken }),
    }).href;
  }

  /** Returns the provider's addresses and keys, which it asks for at most every five minutes. */
  async #configure(provider: Provider): Promise<Configuration> {
    const { clock } = this.#options;
    const { issuer, clientId, clientSecret } = provider;
    const key = JSON.stringify([issuer, clientId, clientSecret]);
    const nowMs = clock.monotonicMs();
    if (this.#known?.key !== key || this.#known.untilMs <= nowMs)
      this.#known = { key, untilMs: nowMs + METADATA_LIFE_MS, configuration: this.#load(provider) };
    const known = this.#known;
    try {
      return await known.configuration;
    } catch (error) {
      if (this.#known === known) this.#known = null;
      throw error;
    }
  }

  async #load(provider: Provider): Promise<Configuration> {
    const openId = await import("openid-client");
    const { clock } = this.#options;
    const { issuer, clientId, clientSecret } = provider;
    const metadata = {
      ...(clientSecret === null ? {} : { client_secret: clientSecret }),
      [openId.clockSkew]: Math.round((clock.now() - systemClock.now()) / 1_000),
      [openId.clockTolerance]: TOLERATED_SECONDS,
    };
    const url = new URL(issuer);
    try {
      const configuration = await openId.discovery(
        url,
        clientId,
        metadata,
        clientSecret === null ? openId.None() : undefined,
        {
          [openId.customFetch]: (address, options) => this.#fetch(address, options),
          execute: [
            openId.enableNonRepudiationChecks,
            ...(url.protocol === "http:" ? [openId.allowInsecureRequests] : []),
          ],
        },
      );
      if (configuration.serverMetadata().issuer.includes("{"))
        throw new OperatorRequestFailed(
          "The issuer URL is shared by all tenants: use the URL of one tenant.",
        );
      return configuration;
    } catch (error) {
      throw rejectFailure(provider, openId, error);
    }
  }

  /** Sends a request of the package. The connection closes with it. */
  async #fetch(address: string, options: OpenId.CustomFetchOptions): Promise<Response> {
    const { clock, allowPrivate } = this.#options;
    const client = new OperatorClient({ clock, allowPrivate });
    const { body } = options;
    try {
      const {
        status,
        headers,
        body: bytes,
      } = await client.request({
        method: options.method === "POST" ? "POST" : "GET",
        url: new URL(address),
        headers: options.headers,
        ...(body === undefined || body === null ? {} : { body: new TextEncoder().encode(String(body)) }),
        maxBytes: MAX_RESPONSE_BYTES,
        timeoutMs: REQUEST_TIMEOUT_MS,
      });
      return new Response(NO_BODY.has(status) ? null : new Uint8Array(bytes), { status, headers });
    } finally {
      client.close();
    }
  }
}

const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** Asks for the groups with the scope of that name, if the provider has one. */
function scopeOf(configuration: Configuration): string {
  const { scopes_supported: supported = [] } = configuration.serverMetadata();
  return ["openid", "email", "profile", ...(supported.includes("groups") ? ["groups"] : [])].join(" ");
}

/** Returns the refusal of a sign-in that the provider or the checks of its response stopped. The message has no text of a response. */
function rejectFailure({ name }: Provider, openId: typeof OpenId, error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  const request = findCause(error, (one) => one instanceof OperatorRequestFailed);
  if (request !== null) return reject(`${name} cannot be reached. ${request.message}`);
  if (error instanceof openId.AuthorizationResponseError)
    return reject(
      error.error === "access_denied" || error.error === "login_required"
        ? `You did not sign in at ${name}: sign in again.`
        : `${name} refused the sign-in (${cleanCode(error.error)}): check the client at the provider.`,
    );
  if (error instanceof openId.ResponseBodyError)
    return reject(
      error.error === "invalid_grant"
        ? `${name} did not accept the code of this sign-in, because it was used before or has expired: sign in again.`
        : `${name} refused Relay (${cleanCode(error.error)}): check the client ID, the client secret and the redirect address.`,
    );
  const code = (error as { code?: unknown }).code;
  const claim = findClaim(error);
  if (code === "OAUTH_JWT_TIMESTAMP_CHECK_FAILED")
    return reject(
      claim === "auth_time"
        ? `${name} did not ask you to sign in again: sign out there, then confirm again.`
        : `The ID token of ${name} has expired, or a clock is wrong: sign in again, and check the clocks of both servers.`,
    );
  if (claim !== null && Object.hasOwn(CLAIMS, claim))
    return reject(`The ID token of ${name} ${CLAIMS[claim as keyof typeof CLAIMS]}: sign in again.`);
  return reject(
    `The response of ${name} is not valid (${cleanCode(findReason(error))}): check the issuer URL and the client at the provider.`,
  );
}

const CLAIMS = {
  aud: "is for another client",
  azp: "is for another client",
  iss: "comes from another issuer",
  nonce: "belongs to another sign-in",
  state: "belongs to another sign-in",
  sub: "is of another person",
} as const;

function reject(message: string): Refusal {
  return new Refusal("oidc_failed", message);
}

function findCause(error: unknown, is: (one: unknown) => boolean): Error | null {
  for (let one = error; one instanceof Error; one = one.cause) if (is(one)) return one;
  return null;
}

/** Returns the message of the first cause. */
function findReason(error: unknown): string {
  let reason = "";
  for (let one = error; one instanceof Error; one = one.cause) reason = one.message;
  return reason;
}

/** Returns the claim that failed a check of the package, or null. */
function findClaim(error: unknown): string | null {
  for (
    let one: unknown = error;
    typeof one === "object" && one !== null;
    one = (one as { cause?: unknown }).cause
  ) {
    const { claim } = one as { claim?: unknown };
    if (typeof claim === "string") return claim;
  }
  return null;
}

/** Returns a code in letters that a person can search for. */
function cleanCode(text: string): string {
  return text.replace(/[^\w .:"-]/g, "").slice(0, 80);
}
