/** Suspends and activates people (`relay people suspend`, `activate`), as the person's page in the dashboard does. */

import { writeJson } from "../../../base/json.ts";
import type { PersonStatus, PersonView } from "../../../shop/people/person.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Command, Input } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { findPerson, PERSON } from "./people.ts";

type Wanted = "suspended" | "active";

const SHAPE = {
  arguments: [PERSON],
  options: [JSON_OUTPUT, ...ANYWHERE],
};

export const peopleSuspend: Command = {
  ...SHAPE,
  words: ["people", "suspend"],
  summary: "suspend a person until you activate them",
  details:
    "The person keeps what they have, but cannot use it. No relay acts for them: their events become dead. Replay those events after you activate the person.",
  examples: ["relay people suspend ada@example.com"],
  run: (input, io) => setStatus(input, io, "suspended"),
};

export const peopleActivate: Command = {
  ...SHAPE,
  words: ["people", "activate"],
  summary: "activate a suspended person again",
  examples: ["relay people activate ada@example.com"],
  run: (input, io) => setStatus(input, io, "active"),
};

async function setStatus(input: Input, io: Io, status: Wanted): Promise<void> {
  const name = input.first();
  const made = await withApi<{ person: PersonView; changed: boolean }>("write", input, io, async (api) => {
    const { id } = await findPerson(api, name);
    const path = `/persons/${encodeURIComponent(id)}`;
    const { person } = await api.request<{ person: PersonView }>("GET", path);
    if (isSo(person.status, status)) return { person, changed: false };
    const changed = await api.request<{ person: PersonView }>("PATCH", path, { status });
    return { person: changed.person, changed: true };
  });
  if (input.on("json")) io.print(writeJson(made, 2));
  io.inform(`${name} is ${SAID[status][made.changed ? "changed" : "same"]}`);
}

/**
 * Reports whether the person has the wanted state. `activate` changes only a suspended person, because an invited one becomes active by
 * signing in.
 */
function isSo(now: PersonStatus, wanted: Wanted): boolean {
  return (now === "suspended") === (wanted === "suspended");
}

const SAID: Readonly<Record<Wanted, { changed: string; same: string }>> = {
  suspended: {
    changed:
      "suspended. They cannot use what they have, and no relay acts for them. To undo this: relay people activate.",
    same: "already suspended: nothing changed.",
  },
  active: { changed: "active again.", same: "not suspended: nothing changed." },
};
