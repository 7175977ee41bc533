/** Stops or allows mail of kind event to a person (`relay people stop-mail`, `allow-mail`), as the dashboard does. */

import { writeJson } from "../../../base/json.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Command, Input } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { World } from "../io.ts";
import { findPerson, PERSON } from "./people.ts";

interface Turned {
  person: string;
  /** The time since when the person takes no mail of kind event, or null if they take it. */
  stoppedAt: string | null;
  changed: boolean;
}

const SHAPE = {
  arguments: [PERSON],
  options: [JSON_OUTPUT, ...ANYWHERE],
};

export const peopleStopMail: Command = {
  ...SHAPE,
  words: ["people", "stop-mail"],
  summary: "send somebody no more mail of kind event",
  details:
    "As the link in such a mail does it. Mail of kind account goes on: it is about the account itself. A relay's email_person of that kind is skipped for them (mail_unsubscribed). relay emails stopped lists who wants none.",
  examples: ["relay people stop-mail ada@example.com"],
  run: (input, world) => turn(input, world, true),
};

export const peopleAllowMail: Command = {
  ...SHAPE,
  words: ["people", "allow-mail"],
  summary: "send somebody mail of kind event again",
  details: "Only where they ask for it: who stopped it with the link in a mail wants none.",
  examples: ["relay people allow-mail ada@example.com"],
  run: (input, world) => turn(input, world, false),
};

async function turn(input: Input, world: World, stopped: boolean): Promise<void> {
  const name = input.first();
  const made = await withApi<Turned>("write", input, world, async (api) => {
    const { id } = await findPerson(api, name);
    const path = `/persons/${encodeURIComponent(id)}/mail-stop`;
    type Answer = { mailStop: { person: string; stoppedAt: string | null } };
    const { mailStop: before } = await api.request<Answer>("GET", path);
    const { mailStop } = await api.request<Answer>("PUT", path, { stopped });
    return { ...mailStop, changed: (before.stoppedAt !== null) !== stopped };
  });
  if (input.on("json")) world.say(writeJson(made, 2));
  if (stopped && made.changed)
    world.tell(
      `${name} gets no more mail of kind event, until relay people allow-mail; mail about their account goes on.`,
    );
  else if (stopped)
    world.tell(
      `${name} gets no mail of kind event since ${made.stoppedAt}: nothing changed. To allow it again: relay people allow-mail.`,
    );
  else if (made.changed)
    world.tell(`${name} gets mail of kind event again; what was skipped meanwhile is not sent now.`);
  else world.tell(`${name} gets mail of kind event already: nothing changed.`);
}
