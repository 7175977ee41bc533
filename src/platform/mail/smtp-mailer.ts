/** The mailer of a server: delivers the mails of an environment to its SMTP server. */

import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Store } from "../../store/port.ts";
import { findEnvironmentById, listEnvironments } from "../account/environment.ts";
import type { AddressLookup } from "../outbound/address-lookup.ts";
import type { Sealer } from "../secret/seal.ts";
import { markTextLeft } from "./email.ts";
import { readMailSettings, unsealSmtpPassword } from "./mail-settings.ts";
import { makeStopUrl } from "./mail-stop.ts";
import { mailboxMailer, type OutgoingMail, type StoppableMailer } from "./mailer.ts";
import { SmtpSender } from "./smtp-sender.ts";

const SEND_TIMEOUT_MS = 60_000;
interface SmtpDeps {
  store: Store;
  sealer: Sealer;
  clock: Clock;
  log: Log;
  /** Private mail servers that the operator allows: exact host names, or ranges such as `10.1.0.0/16`. */
  allowPrivate: readonly string[];
  /** The public origin without a trailing slash; null: unknown. */
  baseUrl: () => string | null;
  /** Looks up all addresses of a host name; `makeLookup` by default. */
  lookup?: AddressLookup;
  /** Certificate authorities to trust instead of the system's (PEM). */
  authorities?: string[];
}

/** Creates the mailer. Throws for a malformed range in `allowPrivate`. */
export function makeSmtpMailer(deps: SmtpDeps): StoppableMailer {
  const { store, clock } = deps;
  const sender = new SmtpSender(deps);

  function stopUrlOf({ environmentId, stopFor }: OutgoingMail): string | null {
    const baseUrl = deps.baseUrl();
    return stopFor === undefined || baseUrl === null
      ? null
      : makeStopUrl(deps.sealer, baseUrl, { environmentId, personId: stopFor });
  }

  return {
    send: (mail, { withinMs = SEND_TIMEOUT_MS } = {}) =>
      sender.send(mail.emailId, async () => {
        const { environmentId, emailId } = mail;
        const found = await findServer(deps, environmentId);
        if (found === null) return null;
        const { fromName, replyTo, ...server } = found;
        return {
          server,
          mail,
          envelope: { fromName, replyTo, stopUrl: stopUrlOf(mail) },
          withinMs,
          markTextLeft: () =>
            store.write("app", (tx) => markTextLeft(tx, emailId, clock.now()), environmentId),
        };
      }),
    async warmUp() {
      const environments = await store.read((tx) => listEnvironments(tx, null));
      if (environments.every((one) => readMailSettings(one).smtp === null)) return;
      await sender.warmUp();
    },
    stop: () => sender.stop(),
  };
}

async function findServer(deps: SmtpDeps, environmentId: number) {
  const environment = await deps.store.read((tx) => findEnvironmentById(tx, environmentId));
  if (environment === null) return null;
  const { smtp, fromName, replyTo } = readMailSettings(environment);
  if (smtp === null) return null;
  return { ...smtp, fromName, replyTo, clearPassword: unsealSmtpPassword(deps.sealer, environmentId, smtp) };
}

/** Creates the mailer of a server, or of local development for `local`. */
export function createMailer(deps: SmtpDeps & { local: boolean }): StoppableMailer {
  return deps.local ? mailboxMailer : makeSmtpMailer(deps);
}
