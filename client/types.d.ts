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
  /** Default: localStorage if the browser has it, otherwise memory. */
  storage?: SessionStorage;
  /** Default: the global fetch. */
  fetch?: (request: Request) => Promise<Response>;
}

/** One thing that is wrong with a request. */
export interface Problem {
  field: string;
  message: string;
}

/** An error response of the service. Also thrown with status 0 if a request does not reach the service (`unreachable`, `bad_answer`). */
export class RelayError extends Error {
  constructor(
    status: number,
    body: { code: string; message: string; problems?: Problem[]; resetAt?: string; url?: string },
  );
  readonly name: "RelayError";
  /** A code such as `product_not_sellable`. The service explains each code at /docs/errors/<code>. */
  readonly code: string;
  /** The HTTP status, or 0 if there was no response. */
  readonly status: number;
  readonly problems: readonly Problem[];
  /** The time when a request can be retried after a cap (429); null for other errors. */
  readonly resetAt: Date | null;
  /** The page where the buyer pays, for `product_not_sellable` and `plan_not_sellable` if the item's soldThrough names one. */
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
  /** The plan's name; null if the app has no plans. */
  plan: string | null;
}

export interface Access {
  granted: boolean;
  /** The time when the last grant ends (ISO 8601); null if it never ends or nothing is granted. */
  until: string | null;
  grants: { source: "relay" | "purchase" | "plan" | "hand"; grantedAt: string; expiresAt: string | null }[];
}

export interface RelayRecord<Data = { [name: string]: Json }> {
  id: string;
  collection: string;
  data: Data;
  /** The id of the person who wrote the record; null if the app wrote it. */
  owner: string | null;
  /** The id of the person whom the record is addressed to. */
  recipient: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface Page<Item> {
  items: Item[];
  /** The `cursor` of the next page; null on the last page. */
  next: string | null;
}

/** One collection, limited to what the signed-in person may read and change. */
export interface Records<Data = { [name: string]: Json }> {
  /** Lists the newest records first. `limit` is 1 to 200, default 50. */
  list(page?: { limit?: number; cursor?: string | null }): Promise<Page<RelayRecord<Data>>>;
  get(id: string): Promise<RelayRecord<Data>>;
  /** Creates a record that the signed-in person owns. `to` names the recipient of a record in a direct collection. */
  create(data: Data, options?: { to?: string }): Promise<RelayRecord<Data>>;
  /** Replaces all of the data. */
  update(id: string, data: Data): Promise<RelayRecord<Data>>;
  delete(id: string): Promise<void>;
}

export interface Client {
  auth: {
    /** Emails a code to the address and returns when the code expires. */
    requestCode(email: string): Promise<{ expiresAt: string }>;
    /** Signs in with the emailed code. A new address becomes a new person. */
    signIn(email: string, code: string): Promise<Person>;
    /**
     * Returns the session's token, or null. Send it to your own server, which calls `POST …/sessions/verify` to learn whose token it is. Anyone
     * who has the token can act as the person, so send it over https and only to your server.
     */
    token(): Promise<string | null>;
    /** True if this client stores a session. The service may have ended it since. */
    isSignedIn(): Promise<boolean>;
    /** Deletes the session from storage and ends it at the service. */
    signOut(): Promise<void>;
    /** Ends every session of the person, on every device. */
    signOutEverywhere(): Promise<void>;
  };
  /** Returns the signed-in person, or null. */
  me(): Promise<Me | null>;
  records<Data = { [name: string]: Json }>(collection: string): Records<Data>;
  access: {
    /** Checks `access:<slug>`, or the name of a product or a plan. */
    check(entitlement: string): Promise<Access>;
  };
  credits: {
    balance(): Promise<number>;
  };
  payments: {
    /** Returns the URL to send the buyer to. Fails with 409 `product_not_sellable` if a relay sells the product; the error has its `url`, if any. */
    buy(product: string): Promise<{ url: string }>;
  };
  subscriptions: {
    /** Returns the URL to send the buyer to. Fails with 409 `plan_not_sellable` if a relay sells the plan; the error has its `url`, if any. */
    checkout(plan: string): Promise<{ url: string }>;
  };
}

/** Creates a client of one app. It makes no request until you call one of its operations. */
export function createClient(options: ClientOptions): Client;
