/**
 * The API of an environment of a data directory: its routes run in this process, with the command line as the caller. A server may run on the same
 * data directory at the same time. No command needs a route that works only in a running service.
 */
import type { ServiceConfig } from "../../../base/config.ts";
import { createLog } from "../../../base/log.ts";
import { Refusal } from "../../../base/refusal.ts";
import { SyncCap } from "../../../operator/sync/sync-cap.ts";
import type { Environment } from "../../../platform/account/environment.ts";
import type { Mailer } from "../../../platform/mail/mailer.ts";
import type { Sealer } from "../../../platform/secret/seal.ts";
import type { Store } from "../../../store/port.ts";
import { BodyRoom } from "../../http/body.ts";
import type { HttpDeps } from "../../http/deps.ts";
import type { Input } from "../command.ts";
import { readAllowPrivate, readRunningLimits, readRunningUrl } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { DEFAULT_PORT, readBaseUrl, readServiceConfig } from "../service-option.ts";
import { type Answered, Api, type Sent } from "./api.ts";

/** The parts of the service that a request needs in addition to its environment. */
interface Parts {
  store: Store;
  config: ServiceConfig;
  input: Input;
  io: Io;
  /** True if a route that stores the first secret can create the master key. */
  writes: boolean;
}

/** Opens the API of an environment. */
export function openLocalApi(
  store: Store,
  environment: Environment,
  { input, io, writes }: Pick<Parts, "input" | "io" | "writes">,
): Api {
  const parts = { store, config: readConfig(environment, input, io), input, io, writes };
  return new LocalApi(environment, parts);
}

/** Reads the configuration. The service that runs here sets the limits and the allowed private addresses; otherwise the command's own apply. */
function readConfig({ name }: Environment, input: Input, io: Io): ServiceConfig {
  const config = readServiceConfig(name === "local" ? "local" : "server", input, io);
  const limits = { ...config.limits, ...readRunningLimits(config.dataDir) };
  const docsUrl = io.env.RELAY_DOCS_URL || null;
  return { ...config, limits, docsUrl, allowPrivate: readAllowPrivate(input, io) };
}

class LocalApi extends Api {
  readonly isLocal = true;
  readonly url: string;
  readonly origin: string;
  readonly #parts: Parts;
  #deps: HttpDeps;
  #isOpened = false;

  constructor(environment: Environment, parts: Parts) {
    super(environment.appId, environment.name);
    this.url = parts.config.dataDir;
    this.origin = findOrigin(parts.config);
    this.#parts = parts;
    this.#deps = makeDeps(parts, UNOPENED);
  }

  protected async send(sent: Sent): Promise<Answered> {
    // A route that reads is served without secrets first, because most lists need none and secrets load 5 ms of code.
    if (sent.method !== "GET") await this.#openSecrets();
    for (;;) {
      try {
        return await this.#serve(sent);
      } catch (error) {
        if (error instanceof UnopenedSecrets) await this.#openSecrets();
        // The first secret creates the key. The route stored nothing: it reads the sealer first, or its transaction was rolled back.
        else if (error instanceof MissingMasterKey && this.#parts.writes) await this.#openFirstKey();
        else throw error;
      }
    }
  }

  async #openSecrets(): Promise<void> {
    if (this.#isOpened) return;
    this.#isOpened = true;
    this.#deps = makeDeps(this.#parts, await openSecrets(this.#parts));
  }

  async #openFirstKey(): Promise<void> {
    const { openSealer } = await import("../../../rules/relay/master-key-proof.ts");
    const sealer = await openSealer(this.#parts.store, this.#parts.config);
    this.#deps = makeDeps(this.#parts, { hasMasterKey: () => true, readSealer: () => sealer });
  }

  async #serve(sent: Sent): Promise<Answered> {
    // The routes are imported late, because a command that calls a server needs none.
    const { serveInProcess } = await import("../../api/in-process.ts");
    const answer = await serveInProcess(this.#deps, sent);
    return { status: answer.status, headers: answer.headers, bytes: await answer.bytes() };
  }
}

/** The error of a route that needs the master key while the data directory has none. */
class MissingMasterKey extends Refusal {
  constructor(dataDir: string) {
    super(
      "invalid_input",
      `${dataDir} has no master key yet, so it has no secrets: start the server once, or give its key in RELAY_MASTER_KEY.`,
    );
  }
}

/** The error of a route that needs secrets before they are opened. */
class UnopenedSecrets extends Error {}

/** Seals and opens secrets. Most routes need no sealer, so only `readSealer` throws why there is none. */
interface Secrets {
  hasMasterKey(): boolean;
  readSealer(): Sealer;
}

const UNOPENED: Secrets = {
  hasMasterKey() {
    throw new UnopenedSecrets();
  },
  readSealer() {
    throw new UnopenedSecrets();
  },
};

async function openSecrets({ store, config }: Parts): Promise<Secrets> {
  const [{ requireMasterKey }, { Sealer }] = await Promise.all([
    import("../../../rules/relay/master-key-proof.ts"),
    import("../../../platform/secret/seal.ts"),
  ]);
  try {
    const key = await store.read((tx) => requireMasterKey(tx, config));
    if (key === null) throw new MissingMasterKey(config.dataDir);
    const sealer = new Sealer(key);
    return { hasMasterKey: () => true, readSealer: () => sealer };
  } catch (error) {
    const readSealer = (): never => {
      throw error;
    };
    return { hasMasterKey: () => false, readSealer };
  }
}

/** The parts that only a running service has. A route that reads one of them throws. */
const SERVICE_PARTS = [
  "receiver",
  "captures",
  "metrics",
  "liveChanges",
  "manualBackup",
  "backupCopies",
  "leases",
  "approvals",
  "personSignin",
  "clientWrites",
  "signinCap",
  "loginCap",
  "oidc",
  "serverMail",
] as const satisfies (keyof HttpDeps)[];

/** Returns the public origin: the option's, the running service's or the default. */
function findOrigin({ baseUrl, dataDir }: ServiceConfig): string {
  return baseUrl ?? readRunningUrl(dataDir) ?? `http://127.0.0.1:${DEFAULT_PORT}`;
}

/** Builds the dependencies of the routes. Code that few routes need is imported when they use it. */
function makeDeps({ store, config, input, io }: Parts, { hasMasterKey, readSealer }: Secrets): HttpDeps {
  const { clock } = io;
  const log = createLog({ clock, format: "text", sink: (line) => io.inform(line) });
  const baseUrl = (): string => findOrigin(config);
  const deps: Omit<HttpDeps, (typeof SERVICE_PARTS)[number]> = {
    config,
    clock,
    store,
    log,
    baseUrl,
    get hasMasterKey() {
      return hasMasterKey();
    },
    get sealer() {
      return readSealer();
    },
    get relays() {
      const sealer = readSealer();
      return {
        async current() {
          const { LiveRelays } = await import("../../../rules/relay/live-relay.ts");
          return await new LiveRelays({ store, sealer, baseUrl }).current();
        },
      };
    },
    get mailer(): Mailer {
      const { allowPrivate, mode } = config;
      const sealer = readSealer();
      const mail = { store, sealer, clock, log, allowPrivate, baseUrl: () => readBaseUrl(input) };
      return {
        async send(one, within) {
          const { createMailer } = await import("../../../platform/mail/smtp-mailer.ts");
          return await createMailer({ ...mail, local: mode === "local" }).send(one, within);
        },
      };
    },
    bodies: new BodyRoom(clock),
    syncCap: new SyncCap(config.limits.syncChangesPerMinute),
    resolveTxt: async (...name) =>
      (await import("../../../platform/mail/sender-domain.ts")).resolveTxt(...name),
    caller: {
      async call(request) {
        const [{ createCaller }, { ownHostOf }] = await Promise.all([
          import("../../../platform/outbound/caller.ts"),
          import("../../../platform/outbound/call-target.ts"),
        ]);
        const ownHosts = () => [ownHostOf(baseUrl())];
        const caller = createCaller({ ownHosts, allowPrivate: config.allowPrivate, clock, concurrency: 1 });
        try {
          return await caller.call(request);
        } finally {
          caller.close();
        }
      },
    },
    telemetry: null,
    // A local command trusts this machine's clock, as the server does.
    scheduler: {
      trustsClock: () => true,
      recordDue: async (...due) => (await import("../../../engine/schedule/schedule.ts")).recordDue(...due),
    },
    // A server that runs here writes its recent requests within a second.
    writeRecentRequests: async () =>
      (await import("../../../engine/event/rejected-arrival.ts")).updateRejected(store, clock.now()),
    projectFolder: null,
    readManual: throwAbsent,
    checkReady: throwAbsent,
  };
  const absent = Object.fromEntries(SERVICE_PARTS.map((name) => [name, { get: throwAbsent }]));
  return Object.defineProperties(deps, absent) as HttpDeps;
}

function throwAbsent(): never {
  throw new Error("This route needs a running service, and a command has none.");
}
