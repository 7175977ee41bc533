/**
 * Defines what products and plans share: one name space (an entitlement is a name that does not say its kind), title, version, how they are sold, and
 * the audit of their changes. An item is sold by a payment link or by a relay. The relay is bound by name, so deleting or renaming it stops
 * fulfillment until a relay of that name exists. Source: the specification's "Relay-sold products and plans".
 */
import { type Static, Type } from "typebox";
import type { RefusalCode } from "../../base/code/refusal-code.ts";
import type { ResultCode } from "../../base/code/result-code.ts";
import { isJsonObject, type Json, writeJson } from "../../base/json.ts";
import { MAX_TITLE_CHARS } from "../../base/limit.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { CATALOG_NAME, RELAY_NAME } from "../../base/shape.ts";
import { breaksOneLine, countChars } from "../../base/text.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import { pageByName } from "../../store/index-scan.ts";
import type { Reader, SqlNames, Writer } from "../../store/port.ts";
import { type defineTable, integer, json, orNull, type RowOf, text } from "../../store/table.ts";

export type ItemKind = "product" | "plan";

export const soldThroughView = Type.Union([
  Type.Object({ kind: Type.Literal("payment_link"), url: Type.String() }),
  Type.Object({
    kind: Type.Literal("relay"),
    relay: Type.String(),
    /** The URL where a buyer pays, so that the relay gets the event. */
    url: Type.Optional(Type.String()),
  }),
]);
export type SoldThrough = Static<typeof soldThroughView>;

/** The columns that both tables share. */
export const ITEM_COLUMNS = {
  environmentId: integer(),
  name: text(),
  title: text(),
  soldThrough: orNull(json<SoldThrough>()),
  version: integer(),
  createdAt: integer(),
  updatedAt: integer(),
};

export type ItemRow = RowOf<ReturnType<typeof defineTable<typeof ITEM_COLUMNS>>>;

/** The fields of both kinds. An item is replaced completely: absent fields take their default (title: the name; soldThrough: none). */
export interface ItemInput {
  title?: string | undefined;
  /** The caller's value, which this file validates. */
  soldThrough?: unknown;
  /** The version that was read; absent: overwrite any version. */
  version?: number | undefined;
}

type ItemKey = Pick<ItemRow, "environmentId" | "name">;

/** The table of one kind, as `defineTable` creates it. */
interface ItemTable<Row> {
  find(tx: Reader, values: ItemKey): Promise<Row | null>;
  require(tx: Reader, values: ItemKey, sentence: string): Promise<Row>;
  all(tx: Reader, rest: string, values: SqlNames): Promise<Row[]>;
  insert(tx: Writer, row: Row): Promise<number>;
  update(tx: Writer, row: Row): Promise<number>;
  delete(tx: Writer, key: ItemKey): Promise<number>;
}

interface ItemWords<Row extends ItemRow, View> {
  kind: ItemKind;
  table: ItemTable<Row>;
  /** Formats an item for the API and the audit. */
  view(row: Row): View;
  codes: ItemCodes;
}

/** Codes for an item that has no payment link, does not exist, or is not sold by the relay that runs. */
interface ItemCodes {
  notSellable: RefusalCode;
  unknown: ResultCode;
  notSoldHere: ResultCode;
}

/** The items of one kind. */
export class CatalogItems<Row extends ItemRow, View> {
  readonly kind: ItemKind;
  readonly codes: ItemCodes;
  readonly #table: ItemTable<Row>;
  readonly #view: (row: Row) => View;

  constructor({ kind, codes, table, view }: ItemWords<Row, View>) {
    this.kind = kind;
    this.codes = codes;
    this.#table = table;
    this.#view = view;
  }

  find(tx: Reader, environmentId: number, name: string): Promise<Row | null> {
    return this.#table.find(tx, { environmentId, name });
  }

  /** Finds an item. Throws `not_found`. */
  require(tx: Reader, environmentId: number, name: string): Promise<Row> {
    const { kind } = this;
    const sentence = `No ${kind} of this name exists in this environment: relay catalog list ${kind} shows the existing ones.`;
    return this.#table.require(tx, { environmentId, name }, sentence);
  }

  /** Lists one page of items, newest first. */
  async list(tx: Reader, environmentId: number, request: PageRequest): Promise<Page<View>> {
    return await pageByName(tx, this.#table, "name", environmentId, request, this.#view);
  }

  /**
   * Returns the payment link of an item. Throws `not_found`, and `product_not_sellable` or `plan_not_sellable`. If a relay sells the item and
   * soldThrough has a URL, the error has it as detail `url`.
   */
  async requirePaymentLink(tx: Reader, environmentId: number, name: string): Promise<string> {
    const { soldThrough } = await this.require(tx, environmentId, name);
    if (soldThrough?.kind === "payment_link") return soldThrough.url;
    const start = `The ${this.kind} ${name}`;
    if (soldThrough === null)
      throw new Refusal(
        this.codes.notSellable,
        `${start} is not sold: give it a payment link or a relay in soldThrough first.`,
      );
    const { url } = soldThrough;
    throw new Refusal(
      this.codes.notSellable,
      `${start} is sold through a relay, so this service cannot start its payment: send the buyer to ${url ?? "the provider that sells it"}.`,
      url === undefined ? {} : { details: { url } },
    );
  }

  /**
   * Validates a write. Returns the existing item, and the item to save without its title and the fields of its kind. Throws `invalid_input`
   * (name, soldThrough), `name_taken` (the other kind has it), `version_conflict` and `relay_missing`.
   */
  async prepare(
    tx: Reader,
    { environmentId, nowMs }: Change,
    name: string,
    input: ItemInput,
  ): Promise<{ before: Row | null; item: Omit<ItemRow, "title"> }> {
    await this.#requireFreeName(tx, environmentId, name);
    const before = await this.find(tx, environmentId, name);
    this.#requireVersion(name, before, input.version);
    const soldThrough = parseSoldThrough(input.soldThrough);
    await requireSellingRelay(tx, environmentId, soldThrough);
    const version = (before?.version ?? 0) + 1;
    const createdAt = before?.createdAt ?? nowMs;
    return { before, item: { environmentId, name, soldThrough, version, createdAt, updatedAt: nowMs } };
  }

  /** Creates or replaces an item, audited. */
  async save(tx: Writer, change: Change, before: Row | null, after: Row): Promise<void> {
    if (before === null) await this.#table.insert(tx, after);
    else await this.#table.update(tx, after);
    await this.#audit(tx, change, before, after);
  }

  /** Finds an item to delete. Throws `not_found` and `version_conflict`; an absent version matches any. */
  async requireAt(tx: Reader, environmentId: number, name: string, version?: number): Promise<Row> {
    const row = await this.require(tx, environmentId, name);
    this.#requireVersion(name, row, version);
    return row;
  }

  /** Deletes an item, audited. */
  async delete(tx: Writer, change: Change, row: Row): Promise<void> {
    await this.#table.delete(tx, row);
    await this.#audit(tx, change, row, null);
  }

  async #requireFreeName(tx: Reader, environmentId: number, name: string): Promise<void> {
    const { kind } = this;
    if (!CATALOG_NAME.test(name)) {
      throw new Refusal(
        "invalid_input",
        `The name of a ${kind} is lowercase letters, digits, hyphens and underscores, starting with a letter, at most 63 characters: choose such a name.`,
      );
    }
    const other: ItemKind = kind === "product" ? "plan" : "product";
    const sql = `SELECT 1 AS found FROM ${other} WHERE environment_id = ?1 AND name = ?2`;
    if ((await tx.get(sql, environmentId, name)) === null) return;
    throw new Refusal(
      "name_taken",
      `\`name\` is taken by a ${other}, and products and plans share one name space: choose another name for the ${kind}.`,
    );
  }

  /** Throws `version_conflict` if the version changed. A caller without a version overwrites. */
  #requireVersion(name: string, row: Row | null, read: number | undefined): void {
    const stored = row?.version ?? null;
    if (read === undefined || read === stored) return;
    const now = stored === null ? "does not exist any more" : `is at version ${stored}`;
    throw new Refusal(
      "version_conflict",
      `The ${this.kind} ${name} ${now} and you read version ${read}: read it again, apply your change and save.`,
      stored === null ? {} : { details: { version: stored } },
    );
  }

  async #audit(tx: Writer, change: Change, before: Row | null, after: Row | null): Promise<void> {
    const done = before === null ? "created" : after === null ? "deleted" : "changed";
    await writeAudit(tx, {
      ...change,
      action: `${this.kind}.${done}`,
      target: `${this.kind}:${(after ?? before)?.name}`,
      before: before === null ? null : this.#view(before),
      after: after === null ? null : this.#view(after),
    });
  }
}

/** Returns the title to store: the given one or the name. Throws `invalid_input` unless it is one line of 1 to 200 characters. */
export function readTitle(title: string | undefined, name: string): string {
  if (title === undefined) return name;
  const trimmed = title.trim();
  const broken = breaksOneLine(trimmed);
  if (broken !== null) {
    throw new Refusal("invalid_input", `\`title\` ${broken}: write one line of plain text.`);
  }
  if (trimmed === "" || countChars(trimmed) > MAX_TITLE_CHARS) {
    throw new Refusal(
      "invalid_input",
      `\`title\` is empty or too long: write 1 to ${MAX_TITLE_CHARS} characters.`,
    );
  }
  return trimmed;
}

const MAX_LINK_CHARS = 2_000;

/** Parses soldThrough; undefined and null mean not sold. Throws `invalid_input`. */
export function parseSoldThrough(value: unknown): SoldThrough | null {
  if (value === undefined || value === null) return null;
  if (isJsonObject(value)) {
    const names = Object.keys(value).sort().join();
    if (names === "kind,url" && value.kind === "payment_link")
      return { kind: "payment_link", url: parseUrl(value.url) };
    if (names === "kind,relay" && value.kind === "relay") return parseRelay(value.relay);
    if (names === "kind,relay,url" && value.kind === "relay")
      return { ...parseRelay(value.relay), url: parseUrl(value.url) };
  }
  throw new Refusal(
    "invalid_input",
    '`soldThrough` is not a way of selling: write { "kind": "payment_link", "url": … }, { "kind": "relay", "relay": …, "url": … } with or without the url, or null.',
  );
}

/** Reports whether soldThrough is equal to a given value. Throws as `parseSoldThrough`. */
export function isSoldAs(current: SoldThrough | null, wanted: unknown): boolean {
  return writeJson(current) === writeJson(parseSoldThrough(wanted));
}

async function requireSellingRelay(
  tx: Reader,
  environmentId: number,
  soldThrough: SoldThrough | null,
): Promise<void> {
  if (soldThrough?.kind !== "relay") return;
  const sql = "SELECT 1 AS found FROM relay WHERE environment_id = ?1 AND name = ?2";
  if ((await tx.get(sql, environmentId, soldThrough.relay)) !== null) return;
  throw new Refusal(
    "relay_missing",
    `\`soldThrough.relay\` names the relay ${soldThrough.relay}, which does not exist in this environment: create it first, or name one that exists.`,
  );
}

function parseRelay(relay: Json | undefined): Extract<SoldThrough, { kind: "relay" }> {
  if (typeof relay === "string" && RELAY_NAME.test(relay)) return { kind: "relay", relay };
  throw new Refusal(
    "invalid_input",
    "`soldThrough.relay` is not the name of a relay: write 2 to 63 lowercase letters, digits and hyphens, starting with a letter.",
  );
}

function parseUrl(url: Json | undefined): string {
  if (typeof url === "string" && url.length <= MAX_LINK_CHARS) {
    const link = URL.parse(url);
    if (link?.protocol === "https:" && link.username === "" && link.password === "") {
      return link.href;
    }
  }
  throw new Refusal(
    "invalid_input",
    `\`soldThrough.url\` is not a payment link: write an https address without credentials, at most ${MAX_LINK_CHARS} characters.`,
  );
}
