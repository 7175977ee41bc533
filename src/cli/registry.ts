/** Every command, one line each, in the order that help shows them. */
import { adminCreate } from "./admin-create.ts";
import { adminReset } from "./admin-reset.ts";
import { appsCreate } from "./apps-create.ts";
import { appsList } from "./apps-list.ts";
import { backup } from "./backup.ts";
import { changes } from "./changes.ts";
import type { Command } from "./command.ts";
import { dev } from "./dev.ts";
import { doctor } from "./doctor.ts";
import { emailsList, emailsSendAgain, emailsTest } from "./emails.ts";
import { eventsExpunge } from "./events-expunge.ts";
import { eventsList } from "./events-list.ts";
import { eventsReplay } from "./events-replay.ts";
import { eventsShow } from "./events-show.ts";
import { eventsTail } from "./events-tail.ts";
import { init } from "./init.ts";
import { keysCreate } from "./keys-create.ts";
import { keysList } from "./keys-list.ts";
import { keysRevoke } from "./keys-revoke.ts";
import { restore } from "./restore.ts";
import { schema } from "./schema.ts";
import { send } from "./send.ts";
import { serve } from "./serve.ts";
import { validate } from "./validate.ts";

export const COMMANDS: readonly Command[] = [
  init,
  dev,
  serve,
  validate,
  schema,
  send,
  eventsList,
  eventsShow,
  eventsReplay,
  eventsExpunge,
  eventsTail,
  emailsList,
  emailsSendAgain,
  emailsTest,
  appsCreate,
  appsList,
  keysCreate,
  keysList,
  keysRevoke,
  adminCreate,
  adminReset,
  backup,
  restore,
  doctor,
  changes,
];
