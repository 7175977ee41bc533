/** Grants an access manually (`relay people grant`), as the dashboard's Grant access does. */

import { toIsoOrNull } from "../../../base/clock.ts";
import { writeJson } from "../../../base/json.ts";
import type { GrantView } from "../../../shop/people/access-grant.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { type Command, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { World } from "../io.ts";
import { readMomentAhead } from "../terminal/time-text.ts";
import { findPerson, PERSON } from "./people.ts";

export const peopleGrant: Command = {
  words: ["people", "grant"],
  summary: "give somebody an access by hand",
  details:
    "It is the owner's: no relay takes it back but revoke_access, and relay people end does. Each time it is written it gives one more. A plan's name gives what the plan opens, and starts no subscription.",
  arguments: [
    PERSON,
    { name: "what", help: "a product or plan, or access:<slug>, as relay catalog list shows them" },
  ],
  options: [
    {
      name: "until",
      value: "<time>",
      otherwise: "until it is ended",
      help: "when it ends: so long from now (24h, 30d), or a time",
    },
    { name: "reason", value: "<text>", help: "stands beside the grant, for whoever looks next" },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay people grant ada@example.com access:members --until 30d --reason support"],
  async run(input, world) {
    const [name = "", entitlement = ""] = input.positionals;
    const reason = input.text("reason");
    const expiresAtMs = readUntil(input, world);
    const { person, grant } = await withApi<{ person: string; grant: GrantView }>(
      "write",
      input,
      world,
      async (api) => {
        const { id } = await findPerson(api, name);
        const body = { entitlement, reason, expiresAt: toIsoOrNull(expiresAtMs) };
        const path = `/persons/${encodeURIComponent(id)}/grants`;
        return { person: id, ...(await api.request<{ grant: GrantView }>("POST", path, body)) };
      },
    );
    if (input.on("json")) world.say(writeJson({ person, grant }, 2));
    const held = `${name} has ${grant.entitlement} now, until`;
    world.tell(
      grant.expiresAt === null
        ? `${held} it is ended: relay people end ${name} ${grant.entitlement}.`
        : `${held} ${grant.expiresAt}.`,
    );
  },
};

/** Reads the end of the grant. Throws UsageError for a text that is not a future time. */
function readUntil(input: Input, world: World): number | null {
  const text = input.text("until");
  if (text === null) return null;
  const nowMs = world.clock.now();
  const moment = readMomentAhead(text, nowMs);
  const given = `--until is ${JSON.stringify(text)}`;
  if (moment === null)
    throw new UsageError(
      `${given}: write how long, such as 24h or 30d, a date, or a time with its zone, such as 2030-01-31T12:00:00Z.`,
    );
  if (moment > nowMs) return moment;
  throw new UsageError(`${given}, which is past: write a later moment, or leave it out.`);
}
