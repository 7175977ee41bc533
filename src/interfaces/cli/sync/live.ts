/**
 * Changes production from the command line. An owner approves the plan in the browser. The command waits for the approval and carries the
 * plan out once. A command that stops waiting withdraws its request.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sleep } from "../../../base/clock.ts";
import type { RefusalCode } from "../../../base/code/refusal-code.ts";
import { writeJson } from "../../../base/json.ts";
import { MINUTE_MS } from "../../../base/limit.ts";
import { Refusal } from "../../../base/refusal.ts";
import { plain } from "../../../base/text.ts";
import type { ApprovalView } from "../../../operator/sync/approval.ts";
import type { PlanPreview, PlanResult } from "../../../operator/sync/plan-view.ts";
import { readLocalSecrets } from "../../../platform/secret/local-secrets.ts";
import { findProfileOf, type Profile } from "../api/profile.ts";
import { askServer, type Remote } from "../api/remote.ts";
import { CommandFailure, type Input, type Option } from "../command.ts";
import type { Io } from "../io.ts";
import { writeCodeLine } from "../refusal-text.ts";
import { isAway, requestApply } from "./apply-request.ts";
import { type Decided, keepSecrets } from "./plan-decision.ts";
import { count } from "./plan-lines.ts";

export const OPEN: Option = { name: "open", help: "open the page of the approval in the browser" };

/** The exit codes in the help of commands that ask for approval. */
export const LIVE_EXIT_CODES = [
  "Exit codes:",
  "  0: done, nothing to do, or a valid plan (--dry-run)",
  "  1: refused or failed",
  "  2: the command line is wrong",
  "  3: an owner refused the approval, or you answered no and the server keeps some items",
  "  4: no owner approved within 10 minutes, or the approval expired before the command applied the plan",
  "  5: the approval is void, because a side changed meanwhile",
  "With --json, the first line has the approval with its URL, and the last line has the result.",
].join("\n");

type State = ApprovalView["state"];

const ENDS: Readonly<Partial<Record<State, { code: number; refusal: RefusalCode; says: string }>>> = {
  denied: { code: 3, refusal: "approval_denied", says: "An owner refused the approval" },
  expired: { code: 4, refusal: "approval_expired", says: "No owner approved within 10 minutes" },
  void: { code: 5, refusal: "approval_void", says: "The approval is void" },
  withdrawn: { code: 5, refusal: "approval_void", says: "The request was withdrawn" },
};

/** The approval of an owner whose plan the command could not apply in time. Run again, the command requests a new one. */
const TOO_LATE =
  "An owner approved, but the approval expired before the command could apply the plan: run the command again for a new approval";

const LOOK_EVERY_MS = 1_000;

/** The change of production, as planned and shown. */
interface LiveChange {
  decided: Decided;
  /** The folder for the file with new secrets. */
  serviceDir: string;
  /** Fails if the local state differs from the shown plan. */
  requireSame(): Promise<void>;
}

/** Asks for approval, waits, and carries the plan out. Returns the result, or the exit code if the plan was not carried out. */
export async function carryLive(
  remote: Remote,
  change: LiveChange,
  input: Input,
  io: Io,
): Promise<PlanResult | number> {
  const { plan, sent, replaceEdited } = change.decided;
  const profile = findProfileOf(io, { url: remote.url, app: remote.app, environment: "production" });
  await change.requireSame();
  const asked = { ...sent, replaceEdited, plan: plan.plan };
  // A stop of the command withdraws the request from here on.
  using stop = new Stop(io);
  const { approval } = await remote.request<{ approval: ApprovalView }>("POST", "/approvals", asked);
  const waiting = new Waiting(remote, change, approval, io, stop);
  const say = (now: ApprovalView, applied: boolean, more: object = {}): void => {
    if (input.on("json")) io.print(writeJson({ ...plan, ...more, approval: now, applied }));
  };
  say(approval, false);
  io.inform(`This changes PRODUCTION of ${plain(approval.app)}. An owner must approve it within 10 minutes:`);
  io.inform(`  ${plain(approval.url)}`);
  io.inform("Waiting for the approval of this plan; Ctrl+C withdraws the request.");
  const page = input.on("open") ? await openApproval(approval.url, io) : null;
  try {
    const { approval: now, done } = await waiting.wait();
    if (done === null) {
      say(now, false);
      return stop.isStopped ? 1 : printEnd(now, remote, io);
    }
    await keepSecrets(done.secrets, change.serviceDir, `${remote.url}/${approval.app}/production`, io);
    const { secrets, ...result } = done;
    say(now, true, { ...result, secretsOf: secrets.map(({ relay }) => relay) });
    io.inform(
      `${count(done.changes, "change")} made in ${plain(`${remote.url}/${approval.app}`)}/production.`,
    );
    printNotLive(done.notLive ?? [], profile, approval, remote, io);
    return done;
  } finally {
    if (page !== null) rmSync(page, { recursive: true, force: true });
  }
}

/** Names the relays that have an open step, and the commands that show their steps. A server of an earlier version names none. */
function printNotLive(
  names: readonly string[],
  profile: Profile | null,
  { app }: ApprovalView,
  { url }: Remote,
  io: Io,
): void {
  if (names.length === 0) return;
  const known = names.map((name) => plain(name)).join(", ");
  if (profile === null) {
    io.inform(`Not live yet: ${known}. Sign in, choose production, and show the open steps:`);
    io.inform(`  relay login --url ${url}`);
  } else io.inform(`Not live yet: ${known}. Show the open steps:`);
  const profileName = profile?.name ?? plain(`${app}-production`);
  for (const name of names) io.inform(`  relay relays checklist ${plain(name)} --profile ${profileName}`);
}

function printEnd({ state, why, decidedBy }: ApprovalView, { url }: Remote, io: Io): number {
  const end = ENDS[state];
  if (end === undefined) return 1;
  const says = state === "expired" && decidedBy !== null ? TOO_LATE : end.says;
  io.inform(`${says}, and nothing was changed.${why === null ? "" : ` ${plain(why)}`}`);
  io.inform(writeCodeLine(end.refusal, ["--url", url], io));
  return end.code;
}

/** Finds a secrets file that cannot be written before the server creates a secret. */
export async function requireSecretsFile({ entries }: PlanPreview, serviceDir: string): Promise<void> {
  await readLocalSecrets(serviceDir);
  const mayMake = entries.some(({ kind, state }) => kind === "relay" && state !== "unchanged");
  if (!mayMake || existsSync(serviceDir)) return;
  throw new CommandFailure(
    "not_found",
    `There is no folder ${serviceDir} for the new secrets of production: name the service directory with --service-dir.`,
  );
}

/**
 * Opens the approval's page and returns the folder of the redirecting page. It checks the scheme, because a server can send any text and a
 * browser may run some schemes.
 */
async function openApproval(url: string, io: Io): Promise<string | null> {
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? "")) {
    io.inform(
      "The command does not open this text, because it is not a web address: find the approval in the server's dashboard.",
    );
    return null;
  }
  const folder = mkdtempSync(join(tmpdir(), "relay-approval-"));
  if (!(await io.openBrowser(url, folder)))
    io.inform("No browser is available here: open the address yourself.");
  return folder;
}

/** The refusals of an approval that ended before its plan was applied. */
const ENDED: ReadonlySet<RefusalCode> = new Set<RefusalCode>(["version_conflict", "approval_expired"]);

interface Waited {
  approval: ApprovalView;
  /** Null if nothing was carried out. */
  done: PlanResult | null;
}

/** The signal of a user who stops the command. It listens until it is disposed. */
class Stop implements Disposable {
  readonly stopped: Promise<void>;
  readonly #ended = new AbortController();
  isStopped = false;

  constructor(io: Io) {
    this.stopped = io.untilStopped(this.#ended.signal).then(() => {
      this.isStopped = !this.#ended.signal.aborted;
    });
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
  }
}

class Waiting {
  readonly #remote: Remote;
  readonly #change: LiveChange;
  readonly #io: Io;
  readonly #path: string;
  readonly #stop: Stop;
  #now: ApprovalView;
  #shownMinutes: number;
  #isAway = false;

  constructor(remote: Remote, change: LiveChange, approval: ApprovalView, io: Io, stop: Stop) {
    this.#stop = stop;
    this.#remote = remote;
    this.#change = change;
    this.#io = io;
    this.#path = `/api/approvals/${approval.id}`;
    this.#now = approval;
    this.#shownMinutes = this.#minutesLeft;
  }

  async wait(): Promise<Waited> {
    try {
      while (this.#now.state === "pending") {
        await Promise.race([this.#stop.stopped, sleep(this.#io.clock, LOOK_EVERY_MS)]);
        if (this.#stop.isStopped) {
          const withdrawn = await this.#withdraw("The command was stopped.");
          this.#io.inform("Stopped: the request is withdrawn, and nothing was changed.");
          return withdrawn;
        }
        const moved = await this.#findMoved();
        if (moved !== null) return moved;
        await this.#readApproval();
      }
      if (this.#now.state !== "approved") return { approval: this.#now, done: null };
      this.#io.inform(`Approved by ${plain(this.#now.decidedBy ?? "").replace(/^owner:/, "")}.`);
      return (await this.#findMoved()) ?? (await this.#apply());
    } catch (error) {
      await this.#withdraw(null).catch(() => undefined);
      throw error;
    }
  }

  /** Reads the approval. It waits while a server restarts, because the approval survives a restart. */
  async #readApproval(): Promise<void> {
    try {
      const { approval } = await askServer<{ approval: ApprovalView }>(this.#remote, "GET", this.#path);
      this.#now = approval;
      this.#isAway = false;
    } catch (error) {
      if (!isAway(error)) throw error;
      if (!this.#isAway) this.#io.inform("The server does not answer now; the command waits for it.");
      this.#isAway = true;
      return;
    }
    if (this.#now.state !== "pending" || this.#minutesLeft === this.#shownMinutes) return;
    this.#shownMinutes = this.#minutesLeft;
    this.#io.inform(`${count(this.#shownMinutes, "minute")} left.`);
  }

  get #minutesLeft(): number {
    return Math.ceil((this.#now.secondsLeft * 1_000) / MINUTE_MS);
  }

  /** Applies the plan. After a lost response it sends the request again, and the server applies the plan only once. */
  async #apply(): Promise<Waited> {
    try {
      const done = await requestApply(
        (keyed) => askServer<PlanResult>(this.#remote, "POST", `${this.#path}/apply`, keyed),
        { forMs: Number.POSITIVE_INFINITY, isOnce: true },
        this.#io,
      );
      const { approval } = await askServer<{ approval: ApprovalView }>(this.#remote, "GET", this.#path).catch(
        () => ({ approval: { ...this.#now, state: "done" as const } }),
      );
      return { approval, done };
    } catch (error) {
      if (error instanceof Refusal && error.code === "approval_used") throw await this.#rejectLost();
      if (error instanceof Refusal && ENDED.has(error.code)) await this.#readApproval();
      if (ENDS[this.#now.state] !== undefined) return { approval: this.#now, done: null };
      throw error;
    }
  }

  /** Describes the loss of the response with the secrets, which the server no longer keeps. */
  async #rejectLost(): Promise<CommandFailure> {
    await this.#readApproval().catch(() => undefined);
    const { secretsOf } = this.#now;
    const made =
      secretsOf === undefined ? "relays that are new in production" : secretsOf.map(plain).join(", ");
    const todo =
      made === ""
        ? "The plan created no secrets, so you need to do nothing"
        : `The answer had the new secrets of ${made}: rotate them on their pages in production's dashboard`;
    return new CommandFailure(
      "service_not_running",
      `The plan was applied, but the server's answer was lost. ${todo}.`,
    );
  }

  /** Withdraws the request if the local files differ from those of the shown plan. */
  async #findMoved(): Promise<Waited | null> {
    try {
      await this.#change.requireSame();
      return null;
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error;
      const { approval } = await this.#withdraw(error.message);
      return { approval: { ...approval, state: "void" }, done: null };
    }
  }

  async #withdraw(why: string | null): Promise<Waited> {
    const sent = { decision: "withdraw", plan: this.#change.decided.plan.plan };
    const { approval } = await askServer<{ approval: ApprovalView }>(
      this.#remote,
      "POST",
      this.#path,
      sent,
    ).catch((error: unknown) => {
      this.#io.inform(
        "The request could not be withdrawn. It expires within 10 minutes, and only this command can apply it.",
      );
      throw error;
    });
    return { approval: why === null ? approval : { ...approval, why }, done: null };
  }
}
