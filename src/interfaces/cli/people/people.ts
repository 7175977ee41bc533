/** Lists people, or shows one person with their current access, its sources and their timeline (`relay people list`, `show`). */

import { writeJson } from "../../../base/json.ts";
import { Refusal } from "../../../base/refusal.ts";
import { cutToLine, plain } from "../../../base/text.ts";
import type { EventItem } from "../../../engine/event/view.ts";
import type { TimelineItem } from "../../../insight/timeline/item.ts";
import type { GrantView } from "../../../shop/people/access-grant.ts";
import type { CreditView } from "../../../shop/people/credit.ts";
import { type PersonStatus, type PersonView, rejectUnknownPerson } from "../../../shop/people/person.ts";
import type { PersonItem } from "../../../shop/people/person-list.ts";
import type { PurchaseView } from "../../../shop/selling/purchase.ts";
import type { SimilarBuyer } from "../../../shop/selling/similar-buyer.ts";
import type { Api } from "../api/api.ts";
import { listItems, withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { openWebPage, WEB } from "../api/web-page.ts";
import type { Command } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { expandId } from "../terminal/id-suffix.ts";
import { formatMore, LIMIT, readLimit, SINCE } from "../terminal/listing.ts";
import { printList, printSheet } from "../terminal/terminal.ts";

const LATELY = { limit: 10, after: null };
/** The argument that names a person. */
export const PERSON = {
  name: "address or id",
  help: "an email address, or an id (or its ending) as relay people list shows it",
};
/** The most characters of a person's attributes. --json shows all of them. */
const MAX_SHOWN_CHARS = 300;
const STATUSES: readonly PersonStatus[] = ["invited", "active", "suspended"];

export const peopleList: Command = {
  words: ["people", "list"],
  summary: "list people, newest first",
  options: [
    { name: "text", value: "<text>", help: "only people whose address contains this text" },
    { name: "status", value: "<status>", help: STATUSES.join(", "), of: STATUSES },
    { ...SINCE, help: "only people added since this time, or within this duration: 24h, 7d" },
    LIMIT,
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay people list --text ada"],
  async run(input, io) {
    const filter = {
      q: input.text("text") ?? undefined,
      status: input.choice("status", STATUSES) ?? undefined,
    };
    const time = { of: (one: PersonItem) => one.createdAt, ordered: true };
    const people = await listItems<PersonItem>(input, io, "/persons", filter, time);
    await printList(input, io, people, {
      columns: [
        { heading: "SINCE", value: (one) => one.createdAt },
        { heading: "STATUS", value: (one) => one.status, tone: true },
        {
          heading: "HAS ACCESS",
          value: (one) => formatAccess(one.access),
          tone: (one) => (one.access.granted ? null : "quiet"),
        },
        { heading: "ACCESS TO", value: formatHoldings },
        { heading: "CREDITS", value: (one) => String(one.credits), right: true },
        { heading: "ADDRESS", value: (one) => one.email, raw: true },
        { heading: "ID", value: (one) => one.id },
      ],
      none: "No people match.",
    });
  },
};

export const peopleShow: Command = {
  words: ["people", "show"],
  summary: "show one person: access, plan, credits, timeline",
  details: "What the person has now, why and since when. Then the timeline, newest first.",
  arguments: [PERSON],
  options: [WEB, { ...LIMIT, help: "how many entries of the timeline" }, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay people show ada@example.com", "relay people show ada@example.com --web"],
  async run(input, io) {
    if (input.on("web"))
      return await openWebPage(input, io, async (api) => ({
        path: ["people", (await requestPerson(api, input.first())).person.id],
      }));
    const limit = readLimit(input);
    const shown = await withApi<Shown>("read", input, io, async (api) => {
      return await readPerson(api, input.first(), limit);
    });
    const { goesOn, ...printed } = shown;
    if (input.on("json")) io.print(writeJson(printed, 2));
    else await printSheet(input, io, writePerson(shown));
    if (goesOn) io.inform(`The timeline has more entries. ${formatMore(shown.story.length)}`);
    if (input.on("json")) return;
    for (const { email, purchase } of shown.similar)
      io.inform(
        `Similar: ${email} bought ${purchase.item} at ${purchase.createdAt}. To move the purchase here, run relay receipts move ${purchase.ref} ${shown.person.email}.`,
      );
    const ill = shown.story.find(
      ({ kind, look }) => kind === "event" && (look === "failed" || look === "dead"),
    );
    if (ill !== undefined)
      io.inform(
        `To see why the event ${ill.look === "dead" ? "is dead" : "failed"}: relay events show ${ill.thing.id}. To run it again: relay events replay ${ill.thing.id}.`,
      );
  },
};

/** Formats the plan and the keys, such as `team, access:forum and 2 more`. A server of an earlier version sends none. */
function formatHoldings({ access, holds }: PersonItem): string {
  if (holds === undefined || !access.granted) return "";
  const { plan, entitlements, count } = holds;
  const keys = entitlements.filter((key) => key !== plan);
  const names = plan === null ? keys : [plan, ...keys];
  const more = count - entitlements.length;
  return `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function formatAccess({ granted, until }: PersonItem["access"]): string {
  if (!granted) return "no";
  return until === null ? "never expires" : `until ${until}`;
}

interface Held {
  person: PersonView;
  /** The id of another person whose address differs only in the spelling of its domain. */
  namesake: string | null;
  tokens: { token: string; createdAt: string }[];
  /** Absent at a server of an earlier version. */
  customers?: { space: string; id: string; eventId: string | null; createdAt: string }[];
  mailStoppedAt: string | null;
  /** The live grants. */
  access: GrantView[];
  ended: GrantView[];
  plan: { name: string | null; since: string | null };
  credits: { balance: number; last: CreditView[] };
  purchases: PurchaseView[];
  /** Similar people who bought something; empty for a person with access or a purchase. */
  similar: SimilarBuyer[];
}

type Shown = Held & {
  events: EventItem[];
  story: TimelineItem[];
  /** True if the timeline has more entries. */
  goesOn: boolean;
};

type PersonAnswer = Pick<Held, "person" | "namesake" | "tokens" | "customers" | "mailStoppedAt"> & {
  plan: string | null;
};

/** Shows a person by address, by id, or by the ending of an id. Refuses with `not_found`. */
async function requestPerson(api: Api, name: string): Promise<PersonAnswer> {
  const { id } = await findPerson(api, name);
  try {
    return await api.request<PersonAnswer>("GET", personPath(id));
  } catch (error) {
    throw error instanceof Refusal && error.code === "not_found" ? rejectUnknownPerson(name) : error;
  }
}

function personPath(id: string): string {
  return `/persons/${encodeURIComponent(id)}`;
}

/** Reads each part from the route that has it. */
async function readPerson(api: Api, name: string, limit: number): Promise<Shown> {
  const { person, plan, namesake, tokens, customers = [], mailStoppedAt } = await requestPerson(api, name);
  const { id } = person;
  const [of, most] = [personPath(id), LATELY.limit];
  const { grants } = await api.request<{ grants: Held["access"] }>("GET", `${of}/access`);
  const had = await api.list<Held["ended"][number]>(`${of}/grants`, {}, most);
  const active = { person: id, status: "active" };
  const plans = await api.list<{ startedAt: string }>("/subscriptions", active, 1);
  const ledger = `${of}/credits?limit=${most}`;
  const credits = await api.request<{ balance: number; items: Held["credits"]["last"] }>("GET", ledger);
  const purchases = await api.list<Held["purchases"][number]>("/purchases", { person: id }, most);
  const events = await api.list<EventItem>("/events", { person: id }, most);
  const story = await api.list<TimelineItem>(`${of}/story`, {}, limit);
  const similar = await readSimilar(api, of);
  return {
    person,
    namesake,
    tokens,
    customers,
    mailStoppedAt,
    access: grants,
    ended: had.items.filter((grant) => !grant.live),
    plan: { name: plan, since: plans.items[0]?.startedAt ?? null },
    credits: { balance: credits.balance, last: credits.items },
    purchases: purchases.items,
    similar,
    events: events.items,
    story: story.items,
    goesOn: story.next !== null,
  };
}

async function readSimilar(api: Api, of: string): Promise<SimilarBuyer[]> {
  try {
    return (await api.request<{ similar: SimilarBuyer[] }>("GET", `${of}/similar`)).similar;
  } catch (error) {
    // A server of an earlier version has no such route.
    if (error instanceof Refusal && error.code === "not_found") return [];
    throw error;
  }
}

/** Finds a person by address, by id, or by the ending of an id. Refuses with `not_found`. */
export async function findPerson(api: Api, name: string): Promise<{ id: string }> {
  if (!name.includes("@"))
    return {
      id:
        (await findByOtherId(api, name)) ??
        (await expandId(name, "people", (most, cursor) =>
          api.page<PersonView>("/persons", {}, most, cursor),
        )),
    };
  const { items } = await api.list<PersonView>("/persons", { email: name }, 1);
  const [found] = items;
  if (found !== undefined) return found;
  throw rejectUnknownPerson(name);
}

/** Finds the person of a store account token or of a provider's customer id. An address that only begins with the text does not count. */
async function findByOtherId(api: Api, name: string): Promise<string | null> {
  if (/^(per_|…)/.test(name)) return null;
  const [found] = (await api.list<PersonView>("/persons", { find: name }, 1)).items;
  const isAddress = found?.email?.toLowerCase().startsWith(name.toLowerCase()) ?? true;
  return found === undefined || isAddress ? null : found.id;
}

function writePerson({
  person,
  namesake,
  tokens,
  customers = [],
  mailStoppedAt,
  access,
  plan,
  credits,
  story,
}: Shown): string[] {
  const because = ({ relay, source, sourceRef, eventId, reason }: (typeof access)[number]): string =>
    [
      relay === null ? `by ${source} ${sourceRef ?? ""}` : `by the relay ${relay}`,
      eventId === null ? "" : `(${eventId})`,
      reason === null ? "" : `: ${reason}`,
    ].join(" ");
  const lines = [
    `${person.email ?? "(no address)"}  ${person.status}  ${person.id}  since ${person.createdAt}`,
    ...(person.status === "suspended"
      ? ["  suspended: cannot use anything listed here, and no relay acts for them"]
      : []),
    ...(namesake === null
      ? []
      : [`  also      ${namesake} has the same address with another spelling of its domain`]),
    `  plan      ${plan.name ?? "none"}${plan.since === null ? "" : ` since ${plan.since}`}`,
    `  credits   ${credits.balance}`,
    ...(access.length === 0 ? ["  access    none"] : []),
    ...access.map(
      (grant) =>
        `  access    ${grant.entitlement} since ${grant.grantedAt}, ${grant.expiresAt === null ? "never expires" : `expires ${grant.expiresAt}`}, ${because(grant)}`,
    ),
    ...(Object.keys(person.attributes).length === 0 ? [] : [`  attributes ${cutAttributes(person)}`]),
    ...tokens.map(({ token, createdAt }) => `  token     ${token} since ${createdAt}`),
    ...customers.map(({ space, id, createdAt }) => `  customer  ${id} of ${space} since ${createdAt}`),
    ...(mailStoppedAt === null
      ? []
      : [
          `  mail      none of kind event since ${mailStoppedAt}; if they ask for it again: relay people allow-mail ${person.id}`,
        ]),
    ...story.map(
      ({ at, kind, look, sentence, detail, thing }) =>
        `  ${at}  ${labelOf(kind, look).padEnd(10)}  ${sentence}${detail === null ? "" : ` (${detail})`}${kind === "event" ? `  ${thing.id}` : ""}`,
    ),
  ];
  return lines.map((line) => line.slice(0, 2) + plainLine(line.slice(2)));
}

/** Returns the first word of a line of the timeline. */
function labelOf(kind: TimelineItem["kind"], look: TimelineItem["look"]): string {
  if (kind === "event") return look;
  return kind === "made" ? "created" : kind;
}

function cutAttributes({ attributes }: PersonView): string {
  const text = plain(writeJson(attributes));
  const printed = cutToLine(text, MAX_SHOWN_CHARS);
  return printed === text ? printed : `${printed}… (--json shows all of them)`;
}

/** Makes a line safe for a terminal, and preserves its columns. */
function plainLine(line: string): string {
  return line
    .split(/( {2,})/)
    .map((part) => (part.trim() === "" ? part : plain(part).trimEnd()))
    .join("")
    .trimEnd();
}
