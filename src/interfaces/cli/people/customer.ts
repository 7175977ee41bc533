/** Links and unlinks customer ids of providers (`relay people link`, `unlink`), as the person's page in the dashboard does. */

import { writeJson } from "../../../base/json.ts";
import type { Api } from "../api/api.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { type Command, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { findPerson, PERSON } from "./people.ts";

const ARGUMENTS = [
  PERSON,
  { name: "customer id", help: "one or more customer ids, as the provider shows them", many: true },
];
const OPTIONS = [
  {
    name: "customers",
    value: "<space>",
    help: "the space of the ids: the name of the receiver relay of that provider",
  },
  JSON_OUTPUT,
  ...ANYWHERE,
];

interface Linked {
  customer: { space: string; id: string; eventId: string | null; createdAt: string };
  /** False if the person had this id before. */
  linked: boolean;
  /** The id of the person who had it; null: no one had it. */
  movedFrom: string | null;
}

export const peopleLink: Command = {
  words: ["people", "link"],
  summary: "link customer ids of a provider to a person",
  details:
    "An event that names only the customer then finds the person, if the relay's definition has trigger.customer. Relay learns most ids by itself, from events that name both. An id of another person moves to this one.",
  arguments: ARGUMENTS,
  options: OPTIONS,
  examples: ["relay people link ada@example.com --customers stripe cus_123"],
  async run(input, io) {
    const made = await withApi("write", input, io, (api) =>
      eachCustomer(api, input, async (path, body) => await api.request<Linked>("PUT", path, body)),
    );
    if (input.on("json")) io.print(writeJson(made, 2));
    const name = input.first();
    for (const { customer, linked, movedFrom } of made.customers) {
      const what = `${customer.id} of ${customer.space}`;
      if (!linked) io.inform(`Nothing changed: ${name} already has ${what}.`);
      else if (movedFrom !== null)
        io.inform(`${what} is linked to ${name} now, and no longer to ${movedFrom}.`);
      else
        io.inform(
          `${what} is linked to ${name}. Events that wait for it run at their next retry, or now with relay events retry.`,
        );
    }
  },
};

export const peopleUnlink: Command = {
  words: ["people", "unlink"],
  summary: "remove customer ids of a provider from a person",
  details:
    "An event that names only such a customer then finds no person, and waits with customer_unknown. The person keeps everything. An event that names the person and the id links it again.",
  arguments: ARGUMENTS,
  options: OPTIONS,
  examples: ["relay people unlink ada@example.com --customers stripe cus_123"],
  async run(input, io) {
    const made = await withApi("write", input, io, (api) =>
      eachCustomer(api, input, async (path, body) => {
        await api.command("POST", `${path}/remove`, body);
        return { ...body, removed: true };
      }),
    );
    if (input.on("json")) io.print(writeJson(made, 2));
    for (const { id, space } of made.customers)
      io.inform(`${id} of ${space} is removed from ${input.first()}.`);
  },
};

/** Does the work for each id in order. */
async function eachCustomer<Done>(
  api: Api,
  input: Input,
  work: (path: string, body: { space: string; id: string }) => Promise<Done>,
): Promise<{ person: string; customers: Done[] }> {
  const space = input.text("customers");
  if (space === null)
    throw new UsageError(
      "--customers is missing: write the space of the ids after it, which is the name of the receiver relay of that provider.",
    );
  const ids = input.positionals.slice(1);
  if (ids.length === 0)
    throw new UsageError(
      "<customer id> is missing: write the ids after the person, as the provider shows them.",
    );
  const { id: person } = await findPerson(api, input.first());
  const path = `/persons/${encodeURIComponent(person)}/customers`;
  const customers: Done[] = [];
  for (const id of ids) customers.push(await work(path, { space, id }));
  return { person, customers };
}
