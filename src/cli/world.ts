/** What a command may touch of the process it runs in: its streams, its variables, its folder, and the service it can start. */
import type { ServiceConfig } from "../config.ts";
import type { Clock } from "../ground/clock.ts";
import type { Sealer } from "../secret/seal.ts";
import type { Store } from "../store/port.ts";

/** A started service, as the commands need it. Disposing it stops it gracefully. */
export interface RunningService extends AsyncDisposable {
  /** Where it listens, without a trailing slash. */
  readonly url: string;
  /** The public origin; receiver URLs begin with it. */
  readonly baseUrl: string;
  readonly port: number;
  readonly store: Store;
  readonly sealer: Sealer;
  /** To be called after relays were changed in the store directly. */
  refresh(): void;
  /** A one-time link into the dashboard (local) or to the first set-up (server); null once an owner exists. */
  makeSigninLink(): Promise<string | null>;
}

/** `stopped` ends a start that waits for its disk; it rejects then. */
type StartService = (config: ServiceConfig, ports: { stopped: Promise<unknown> }) => Promise<RunningService>;

export interface World {
  clock: Clock;
  env: Readonly<Record<string, string | undefined>>;
  cwd: string;
  /** Whether a person sits at it: standard output is a terminal. */
  interactive: boolean;
  /** Data: one line (or more) on standard output. */
  say(text: string): void;
  /** Talk: one line (or more) on standard error. */
  tell(text: string): void;
  /** All of standard input. */
  readInput(): Promise<string>;
  /** Resolves on SIGINT or SIGTERM; a second one ends the process at once. */
  untilStopped(): Promise<void>;
  /** Opens a one-time link in the person's browser, over a page in this folder of theirs; answers whether something opened it. */
  openBrowser(link: string, folder: string): Promise<boolean>;
  startService: StartService;
  /** The address under which an owner sets a new password with this one-time token. */
  resetUrl(baseUrl: string, token: string): string;
}
