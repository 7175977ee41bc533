/** Stops or allows mail of kind event to a person (`relay people stop-mail`, `allow-mail`), as the dashboard does. */

import { writeJson } from "../../../base/json.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Command, Input } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
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
  summary: "stop mail of kind event to a person",
  details:
    "The unsubscribe link in such a mail does the same. Mail of kind account continues, because it is about the account itself. An email_person action of kind event skips this person (mail_unsubscribed). relay emails stopped lists everyone who unsubscribed.",
  examples: ["relay people stop-mail ada@example.com"],
  run: (input, io) => turn(input, io, true),
};

export const peopleAllowMail: Command = {
  ...SHAPE,
  words: ["people", "allow-mail"],
  summary: "allow mail of kind event to a person again",
  details: "Do this only if the person asks for it. They may have unsubscribed with the link in a mail.",
  examples: ["relay people allow-mail ada@example.com"],
  run: (input, io) => turn(input, io, false),
};

async function turn(input: Input, io: Io, stopped: boolean): Promise<void> {
  const name = input.first();
  const made = await withApi<Turned>("write", input, io, async (api) => {
    const { id } = await findPerson(api, name);
    const path = `/persons/${encodeURIComponent(id)}/mail-stop`;
    type Answer = { mailStop: { person: string; stoppedAt: string | null } };
    const { mailStop: before } = await api.request<Answer>("GET", path);
    const { mailStop } = await api.request<Answer>("PUT", path, { stopped });
    return { ...mailStop, changed: (before.stoppedAt !== null) !== stopped };
  });
  if (input.on("json")) io.print(writeJson(made, 2));
  if (stopped && made.changed)
    io.inform(
      `${name} no longer gets mail of kind event. Mail about their account continues. To allow it again: relay people allow-mail.`,
    );
  else if (stopped)
    io.inform(
      `Nothing changed: ${name} has had no mail of kind event since ${made.stoppedAt}. To allow it again: relay people allow-mail.`,
    );
  else if (made.changed)
    io.inform(`${name} gets mail of kind event again. Mail that was skipped before is not sent.`);
  else io.inform(`Nothing changed: ${name} already gets mail of kind event.`);
}
