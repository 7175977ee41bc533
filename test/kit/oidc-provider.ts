/**
 * A real OpenID provider on loopback: the package oidc-provider, with accounts and groups that a test sets. A person signs in by their name in a form,
 * without a password. A test can change the claims of the next ID tokens, which are then signed again with the provider's own key.
 */
import { createSign, generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Provider } from "oidc-provider";

export const CLIENT_ID = "relay";
export const CLIENT_SECRET = "a secret of the client with enough characters";

interface Account {
  email?: string;
  email_verified?: boolean;
  groups?: readonly string[];
}

type Claims = Record<string, unknown>;

export interface OidcDouble extends AsyncDisposable {
  issuer: string;
  /** The accounts by name. The name is the subject. */
  accounts: Map<string, Account>;
  /** Changes the claims of the next ID tokens; null changes nothing. */
  tamper: ((claims: Claims) => Claims) | null;
  /** The paths that were requested. */
  paths: string[];
  /** Follows the address of a sign-in as a browser does, signs in by name, and returns the query of the response. */
  signIn(url: string, name: string): Promise<string>;
}

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const KEY = { ...privateKey.export({ format: "jwk" }), kid: "one", alg: "RS256", use: "sig" };

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

function sign(claims: Claims): string {
  const text = `${encode({ alg: "RS256", kid: "one" })}.${encode(claims)}`;
  return `${text}.${createSign("RSA-SHA256").update(text).sign(privateKey).toString("base64url")}`;
}

const page = (body: string): string => `<!doctype html><title>Provider</title>${body}`;

/** Starts the provider for a client with this redirect address. `after` is where a sign-out leads. */
export async function startOidcProvider({ redirectUrl, after }: { redirectUrl: string; after: string }): Promise<OidcDouble> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const accounts: OidcDouble["accounts"] = new Map();
  const client = {
    client_id: CLIENT_ID,
    client_secret: CLIENT_SECRET,
    redirect_uris: [redirectUrl],
    post_logout_redirect_uris: [after],
    token_endpoint_auth_method: "client_secret_post",
  };
  const provider = new Provider(issuer, {
    clients: [client],
    jwks: { keys: [KEY] },
    cookies: { keys: ["a key of the cookies"] },
    claims: { openid: ["sub"], email: ["email", "email_verified"], groups: ["groups"] },
    scopes: ["openid", "email", "profile", "groups"],
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource(ctx: { body: unknown }, form: string) {
          ctx.body = page(`${form}<button form="op.logoutForm" name="logout" value="yes">Sign out of the provider</button>`);
        },
      },
    },
    interactions: { url: (_ctx: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    ttl: { AccessToken: 60, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    findAccount: (_ctx: unknown, id: string) => {
      const account = accounts.get(id);
      return account === undefined ? undefined : { accountId: id, claims: () => ({ sub: id, ...account }) };
    },
    async loadExistingGrant(ctx: { oidc: { session: { accountId: string }; client: { clientId: string } } }) {
      const { session, client: asking } = ctx.oidc;
      const grant = new provider.Grant({ accountId: session.accountId, clientId: asking.clientId });
      grant.addOIDCScope("openid email profile groups");
      await grant.save();
      return grant;
    },
  });
  const double: OidcDouble = {
    issuer,
    accounts,
    tamper: null,
    paths: [],
    signIn,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  provider.use(async (ctx, next) => {
    double.paths.push(ctx.path);
    if (ctx.path.startsWith("/interaction/")) return await interact(provider, ctx);
    await next();
    const tokens = ctx.body as { id_token?: string } | null;
    if (ctx.oidc?.route !== "token" || double.tamper === null || tokens?.id_token === undefined) return;
    const [, claims = ""] = tokens.id_token.split(".");
    tokens.id_token = sign(double.tamper(JSON.parse(Buffer.from(claims, "base64url").toString())));
  });
  server.on("request", provider.callback());
  return double;
}

type Context = Parameters<Parameters<Provider["use"]>[0]>[0];

/** Shows the form of a sign-in, and takes it. */
async function interact(provider: Provider, ctx: Context): Promise<void> {
  if (ctx.method === "GET") {
    ctx.type = "html";
    ctx.body = page(`<form method="post"><label>Name <input name="name"></label><button>Continue</button></form>`);
    return;
  }
  const chunks: Buffer[] = [];
  for await (const chunk of ctx.req) chunks.push(chunk as Buffer);
  const name = new URLSearchParams(Buffer.concat(chunks).toString()).get("name") ?? "";
  ctx.respond = false;
  const result = name === "" ? { error: "access_denied" } : { login: { accountId: name } };
  await provider.interactionFinished(ctx.req, ctx.res, result, { mergeWithLastSubmission: false });
}

async function signIn(begin: string, name: string): Promise<string> {
  const cookies = new Map<string, string>();
  const { origin } = new URL(begin);
  let url = begin;
  for (let step = 0; step < 10; step += 1) {
    const isForm = new URL(url).pathname.startsWith("/interaction/");
    const response: Response = await fetch(url, {
      redirect: "manual",
      headers: { cookie: [...cookies].map(([key, value]) => `${key}=${value}`).join("; ") },
      ...(isForm ? { method: "POST", body: new URLSearchParams({ name }) } : {}),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [pair = ""] = cookie.split(";");
      const at = pair.indexOf("=");
      cookies.set(pair.slice(0, at), pair.slice(at + 1));
    }
    const location = response.headers.get("location");
    if (location === null) throw new Error(`The provider answered ${response.status}: ${await response.text()}`);
    const next = new URL(location, url);
    if (next.origin !== origin) return next.search;
    url = next.href;
  }
  throw new Error("The sign-in at the provider did not end.");
}
