/** `relay people …`: who is here, and one person: what they have, why and since when, and what happened for them last. */

import { readEvents } from "../event/list.ts";
import type { EventItem } from "../event/view.ts";
import { writeJson } from "../ground/json.ts";
import { MAX_PAGE_SIZE } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import { plain } from "../ground/text.ts";
import { checkAccess, listGrants } from "../people/access-grant.ts";
import { listCredits } from "../people/credit.ts";
import {
  listPersons,
  type PersonStatus,
  type PersonView,
  refuseNobody,
  requirePersonNamed,
  viewPerson,
} from "../people/person.ts";
import { currentPlan } from "../selling/plan-sale.ts";
import { listPurchases } from "../selling/purchase.ts";
import type { Reader } from "../store/port.ts";
import { readPage } from "../store/walk.ts";
import type { Command } from "./command.ts";
import { JSON_OUTPUT } from "./data-directory.ts";
import { ANYWHERE, atPlace } from "./place.ts";
import { askPlace, listRemote, type Remote } from "./remote.ts";
import { sayList } from "./terminal.ts";

const DEFAULT_LIMIT = 20;
const LATELY = { limit: 10, after: null };
const STATUSES: readonly PersonStatus[] = ["invited", "active", "suspended"];

export const peopleList: Command = {
  words: ["people", "list"],
  summary: "list people, newest first",
  options: [
    { name: "text", value: "<text>", help: "a part of the address" },
    { name: "status", value: "<status>", help: STATUSES.join(", ") },
    { name: "limit", value: "<number>", otherwise: String(DEFAULT_LIMIT), help: "how many at most" },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay people list --text ada"],
  async run(input, world) {
    const limit = input.number("limit", { from: 1, to: MAX_PAGE_SIZE }) ?? DEFAULT_LIMIT;
    const filter = {
      q: input.text("text") ?? undefined,
      status: input.choice("status", STATUSES) ?? undefined,
    };
    const { items } = await atPlace(input, world, {
      here: (store, { id }) =>
        readPage(store, { limit, after: null }, (tx, part) => listPersons(tx, id, part, filter)),
      there: (remote) => listRemote<PersonView>(remote, "/persons", filter, limit),
    });
    sayList(input, world, items, {
      headings: ["SINCE", "STATUS", "ADDRESS", "ID"],
      row: (one) => [one.createdAt, one.status, one.email ?? "", one.id],
      none: "Nobody matches.",
    });
  },
};

export const peopleShow: Command = {
  words: ["people", "show"],
  summary: "one person: what they have, why and since when, and their last events",
  arguments: [{ name: "address or id", help: "an e-mail address, or an id as relay people list shows it" }],
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay people show ada@example.com"],
  async run(input, world) {
    const nowMs = world.clock.now();
    const story = await atPlace<Story>(input, world, {
      here: async (store, { id }) => {
        const held = await store.read((tx) => readHeld(tx, id, input.first(), nowMs));
        const person = held.person.id;
        const events = await readEvents(store, id, { person }, LATELY);
        return { ...held, events: events.items };
      },
      there: (remote) => readStoryThere(remote, input.first()),
    });
    world.say(input.on("json") ? writeJson(story, 2) : writeStory(story).join("\n"));
  },
};

async function readHeld(tx: Reader, environmentId: number, name: string, nowMs: number) {
  const person = viewPerson(await requirePersonNamed(tx, environmentId, name));
  const holding = { environmentId, personId: person.id, entitlement: null, nowMs };
  const { grants: live } = await checkAccess(tx, holding);
  const grants = await listGrants(tx, holding, LATELY);
  const { plan, subscription } = await currentPlan(tx, environmentId, person.id);
  const credits = await listCredits(tx, { environmentId, personId: person.id }, LATELY);
  const purchases = await listPurchases(tx, environmentId, LATELY, { person: person.id });
  return {
    person,
    access: live,
    ended: grants.items.filter((grant) => !grant.live),
    plan: {
      name: plan,
      since: subscription === null ? null : new Date(subscription.startedAt).toISOString(),
    },
    credits: { balance: credits.balance, last: credits.items },
    purchases: purchases.items,
  };
}

type Held = Awaited<ReturnType<typeof readHeld>>;
type Story = Held & {
  events: EventItem[];
};

/** The same of a server, each part by the route that has it. */
async function readStoryThere(remote: Remote, name: string): Promise<Story> {
  const { id } = await findPersonThere(remote, name);
  const [of, most] = [`/persons/${encodeURIComponent(id)}`, LATELY.limit];
  const { person, plan } = await askPlace<Pick<Held, "person"> & { plan: string | null }>(
    remote,
    "GET",
    of,
  ).catch((error: unknown) => {
    throw error instanceof Refusal && error.code === "not_found" ? refuseNobody(name) : error;
  });
  const { grants } = await askPlace<{ grants: Held["access"] }>(remote, "GET", `${of}/access`);
  const had = await listRemote<Held["ended"][number]>(remote, `${of}/grants`, {}, most);
  const active = { person: id, status: "active" };
  const plans = await listRemote<{ startedAt: string }>(remote, "/subscriptions", active, 1);
  const ledger = `${of}/credits?limit=${most}`;
  const credits = await askPlace<{ balance: number; items: Held["credits"]["last"] }>(remote, "GET", ledger);
  const purchases = await listRemote<Held["purchases"][number]>(remote, "/purchases", { person: id }, most);
  const events = await listRemote<Story["events"][number]>(remote, "/events", { person: id }, most);
  return {
    person,
    access: grants,
    ended: had.items.filter((grant) => !grant.live),
    plan: { name: plan, since: plans.items[0]?.startedAt ?? null },
    credits: { balance: credits.balance, last: credits.items },
    purchases: purchases.items,
    events: events.items,
  };
}

async function findPersonThere(remote: Remote, name: string): Promise<{ id: string }> {
  if (!name.includes("@")) return { id: name };
  const { items } = await listRemote<PersonView>(remote, "/persons", { email: name }, 1);
  const [found] = items;
  if (found !== undefined) return found;
  throw refuseNobody(name);
}

function writeStory({ person, access, ended, plan, credits, purchases, events }: Story): string[] {
  const because = ({ relay, source, sourceRef, eventId, reason }: (typeof access)[number]): string =>
    [
      relay === null ? `by ${source} ${sourceRef ?? ""}` : `by the relay ${relay}`,
      eventId === null ? "" : `(${eventId})`,
      reason === null ? "" : `: ${reason}`,
    ].join(" ");
  const lines = [
    `${person.email ?? "(no address)"}  ${person.status}  ${person.id}  since ${person.createdAt}`,
    ...(person.status === "suspended"
      ? ["  suspended: may use nothing of what follows, and no relay acts for them"]
      : []),
    `  plan      ${plan.name ?? "none"}${plan.since === null ? "" : ` since ${plan.since}`}`,
    `  credits   ${credits.balance}`,
    ...credits.last.map(
      (line) => `            ${line.createdAt}  ${line.amount > 0 ? "+" : ""}${line.amount}  ${line.reason}`,
    ),
    ...(access.length === 0 ? ["  access    none"] : []),
    ...access.map(
      (grant) =>
        `  access    ${grant.entitlement} since ${grant.grantedAt}, until ${grant.expiresAt ?? "revoked"}, ${because(grant)}`,
    ),
    ...ended.map(
      (grant) =>
        `  had       ${grant.entitlement} from ${grant.grantedAt} to ${grant.revokedAt ?? grant.expiresAt ?? "?"}, ${because(grant)}`,
    ),
    ...purchases.map((one) => `  ${one.kind.padEnd(9)} ${one.item} at ${one.createdAt}, ref ${one.ref}`),
    ...(events.length === 0 ? ["  events    none in the last 30 days"] : []),
    ...events.map(
      (event) =>
        `  event     ${event.createdAt}  ${event.state}  ${event.relay.name}  ${event.id}  ${event.reason ?? ""}`,
    ),
  ];
  return lines.map((line) => line.slice(0, 2) + plainLine(line.slice(2)));
}

/** Safe for a terminal, its columns kept. */
function plainLine(line: string): string {
  return line
    .split(/( {2,})/)
    .map((part) => (part.trim() === "" ? part : plain(part).trimEnd()))
    .join("")
    .trimEnd();
}
