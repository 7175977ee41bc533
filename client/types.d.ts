/** The types of g, the client library of the relay service. */

/** Stores the session's token between pages; localStorage and AsyncStorage both fit. */
export interface SessionStorage {
  getItem(name: string): string | null | Promise<string | null>;
  setItem(name: string, value: string): void | Promise<void>;
  removeItem(name: string): void | Promise<void>;
}

export interface ClientOptions {
  /** The address of the service: `https://relay.example.com`. */
  url: string;
  /** An app key, `ak_…`. Never a secret key: anyone who opens the page can read it. */
  key: string;
  /** Default: localStorage where there is one, else memory. */
  storage?: SessionStorage;
  /** Default: the global fetch. */
  fetch?: (request: Request) => Promise<Response>;
}

/** One thing that is wrong with a request. */
export interface Problem {
  field: string;
  message: string;
}

/** Every refusal of the service, and what keeps a request from reaching it (`unreachable`, `bad_answer`, status 0). */
export class RelayError extends Error {
  constructor(
    status: number,
    body: { code: string; message: string; problems?: Problem[]; resetAt?: string; url?: string },
  );
  readonly name: "RelayError";
  /** Such as `product_not_sellable`; the service explains each at /docs/errors/<code>. */
  readonly code: string;
  /** The HTTP status, 0 where there was no answer. */
  readonly status: number;
  readonly problems: readonly Problem[];
  /** For caps (429): when to retry. */
  readonly resetAt: Date | null;
  /** For `product_not_sellable` and `plan_not_sellable`: where the buyer pays, if the item's soldThrough says so. */
  readonly url: string | null;
}

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export interface Person {
  id: string;
  email: string;
  /** ISO 8601. */
  createdAt: string;
}

export interface Me {
  person: Person;
  /** The plan's name; null where the app has no plans. */
  plan: string | null;
}

export interface Access {
  granted: boolean;
  /** When the last grant ends (ISO 8601); null: never, or nothing is granted. */
  until: string | null;
  grants: { source: "relay" | "purchase" | "plan" | "hand"; grantedAt: string; expiresAt: string | null }[];
}

export interface RelayRecord<Data = { [name: string]: Json }> {
  id: string;
  collection: string;
  data: Data;
  /** The id of the person who wrote it; null: the app's own. */
  owner: string | null;
  /** The id of the person it is addressed to. */
  recipient: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface Page<Item> {
  items: Item[];
  /** Give it as `cursor` to get the next page; null on the last one. */
  next: string | null;
}

/** One collection, as far as the signed-in person may see and change it. */
export interface Records<Data = { [name: string]: Json }> {
  /** Newest first; `limit` 1 to 200, default 50. */
  list(page?: { limit?: number; cursor?: string | null }): Promise<Page<RelayRecord<Data>>>;
  get(id: string): Promise<RelayRecord<Data>>;
  /** The signed-in person becomes the owner; `to` is the person a record of a direct collection is for. */
  create(data: Data, options?: { to?: string }): Promise<RelayRecord<Data>>;
  /** Replaces the data whole. */
  update(id: string, data: Data): Promise<RelayRecord<Data>>;
  delete(id: string): Promise<void>;
}

export interface Client {
  auth: {
    /** Mails a code to the address; answers when the code ends. */
    requestCode(email: string): Promise<{ expiresAt: string }>;
    /** Signs in with the mailed code; a new address becomes a new person. */
    signIn(email: string, code: string): Promise<Person>;
    /**
     * The session's token, or null. Send it to your own server, which asks `POST …/sessions/verify` whose it is. A person who has the token acts
     * as the person: send it over https, and only to your server.
     */
    token(): Promise<string | null>;
    /** Whether a session is kept here; the service may have ended it since. */
    isSignedIn(): Promise<boolean>;
    /** Forgets the session here and ends it at the service. */
    signOut(): Promise<void>;
    /** Ends every session of the person, on every device. */
    signOutEverywhere(): Promise<void>;
  };
  /** Who is signed in, or null. */
  me(): Promise<Me | null>;
  records<Data = { [name: string]: Json }>(collection: string): Records<Data>;
  access: {
    /** `access:<slug>`, a product's or a plan's name. */
    check(entitlement: string): Promise<Access>;
  };
  credits: {
    balance(): Promise<number>;
  };
  payments: {
    /** Where to send the buyer. 409 `product_not_sellable` where a relay sells the product, with the error's `url` if it has one. */
    buy(product: string): Promise<{ url: string }>;
  };
  subscriptions: {
    /** Where to send the buyer. 409 `plan_not_sellable` where a relay sells the plan, with the error's `url` if it has one. */
    checkout(plan: string): Promise<{ url: string }>;
  };
}

/** A client of one app. It makes no request until one of its operations is called. */
export function createClient(options: ClientOptions): Client;
