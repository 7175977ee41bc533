/** Grants an access manually (`relay people grant`), as the dashboard's Grant access does. */

import { toIsoOrNull } from "../../../base/clock.ts";
import { writeJson } from "../../../base/json.ts";
import type { GrantView } from "../../../shop/people/access-grant.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { type Command, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { readMomentAhead } from "../terminal/time-text.ts";
import { findPerson, PERSON } from "./people.ts";

export const peopleGrant: Command = {
  words: ["people", "grant"],
  summary: "grant access to a person",
  details:
    "Only the action revoke_access and relay people end can end this grant. Each run adds another grant. The name of a plan grants what the plan includes, and starts no subscription.",
  arguments: [
    PERSON,
    { name: "what", help: "a product, a plan or access:<slug>, as relay catalog list shows it" },
  ],
  options: [
    {
      name: "until",
      value: "<time>",
      otherwise: "never",
      help: "when the grant expires: a duration from now (24h, 30d), or a time",
    },
    { name: "reason", value: "<text>", help: "why you grant it; shown next to the grant" },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay people grant ada@example.com access:members --until 30d --reason support"],
  async run(input, io) {
    const [name = "", entitlement = ""] = input.positionals;
    const reason = input.text("reason");
    const expiresAtMs = readUntil(input, io);
    const { person, grant } = await withApi<{ person: string; grant: GrantView }>(
      "write",
      input,
      io,
      async (api) => {
        const { id } = await findPerson(api, name);
        const body = { entitlement, reason, expiresAt: toIsoOrNull(expiresAtMs) };
        const path = `/persons/${encodeURIComponent(id)}/grants`;
        return { person: id, ...(await api.request<{ grant: GrantView }>("POST", path, body)) };
      },
    );
    if (input.on("json")) io.print(writeJson({ person, grant }, 2));
    const held = `${name} has ${grant.entitlement} now.`;
    io.inform(
      grant.expiresAt === null
        ? `${held} The grant never expires. To end it: relay people end ${name} ${grant.entitlement}.`
        : `${held} The grant expires at ${grant.expiresAt}.`,
    );
  },
};

/** Reads the end of the grant. Throws UsageError for a text that is not a future time. */
function readUntil(input: Input, io: Io): number | null {
  const text = input.text("until");
  if (text === null) return null;
  const nowMs = io.clock.now();
  const moment = readMomentAhead(text, nowMs);
  const given = `--until is ${JSON.stringify(text)}`;
  if (moment === null)
    throw new UsageError(
      `${given}: write a duration such as 24h or 30d, a date, or a time with its zone, such as 2030-01-31T12:00:00Z.`,
    );
  if (moment > nowMs) return moment;
  throw new UsageError(`${given}, which is in the past: write a future time, or leave --until out.`);
}
