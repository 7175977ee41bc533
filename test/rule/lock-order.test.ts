/**
 * The order of the locks of PostgreSQL's writers (docs/adr/0063-lock-per-environment.md), checked over every interleaving of a few transactions. The
 * locks are granted as the server grants them: a request waits for conflicting holders, and for conflicting requests that came before it.
 */
import { describe, expect, test } from "bun:test";

/** `all` has two modes. The others have a single holder: an environment, the rows of no environment (0), and the row of an app with a limit. */
type Lock = { on: "all"; mode: "shared" | "exclusive" } | { on: `environment ${number}` | `app ${string}`; mode: "exclusive" };

/** The values that the transactions share. Each value is visible to others after the commit, except for `numbers`, which come from a sequence. */
interface Io {
  numbers: number;
  /** The numbers of the committed events of each environment, in the order of the commits. */
  events: Record<number, number[]>;
  epochs: Record<number, number>;
  mails: number;
  /** The first broken rule. */
  broken: string | null;
}

/** The values that a transaction read or will write. */
type Own = Record<string, number>;
type Step = { lock: Lock } | { work: (io: Io, own: Own) => void };

interface Transaction {
  what: string;
  steps: readonly Step[];
  /** Makes the writes visible. */
  commit: (io: Io, own: Own) => void;
  /** True if its node may stop at any step, after which the server ends the transaction. */
  mayStop?: boolean;
}

interface State {
  /** The next step of each transaction. It equals the number of steps before the commit, and one more after it. */
  at: number[];
  own: Own[];
  held: { by: number; lock: Lock }[];
  waiting: { by: number; lock: Lock }[];
  io: Io;
}

/** Copies what a step changes. The lists of events are replaced, never changed. */
const copyOf = ({ at, own, held, waiting, io }: State): State => ({
  at: [...at],
  own: own.map((one) => ({ ...one })),
  held: [...held],
  waiting: [...waiting],
  io: { ...io, events: { ...io.events }, epochs: { ...io.epochs } },
});

const conflicts = (one: Lock, other: Lock): boolean => one.on === other.on && (one.mode === "exclusive" || other.mode === "exclusive");

/** Returns every state that follows, or those in which nothing can happen although a transaction is open. */
function follow(state: State, transactions: readonly Transaction[]): State[] {
  const next: State[] = [];
  for (const [by, { steps, commit, mayStop }] of transactions.entries()) {
    const at = state.at[by] ?? 0;
    if (at > steps.length) continue;
    if (mayStop === true && at > 0) next.push(end(state, by, steps.length, () => undefined));
    if (state.waiting.some((one) => one.by === by)) continue;
    const step = steps[at];
    if (step === undefined) next.push(end(state, by, steps.length, commit));
    else if ("lock" in step) next.push(request(state, by, step.lock));
    else {
      const copy = copyOf(state);
      step.work(copy.io, copy.own[by] ?? {});
      copy.at[by] = at + 1;
      next.push(copy);
    }
  }
  return next;
}

function request(state: State, by: number, lock: Lock): State {
  const copy = copyOf(state);
  const isFree = [...copy.held, ...copy.waiting].every((one) => one.by === by || !conflicts(one.lock, lock));
  if (isFree) grant(copy, by, lock);
  else copy.waiting.push({ by, lock });
  return copy;
}

function grant(state: State, by: number, lock: Lock): void {
  state.held.push({ by, lock });
  state.at[by] = (state.at[by] ?? 0) + 1;
  checkHolders(state);
}

/** Ends the transaction, frees its locks, and grants them in the order of the requests. */
function end(state: State, by: number, steps: number, commit: Transaction["commit"]): State {
  const copy = copyOf(state);
  commit(copy.io, copy.own[by] ?? {});
  copy.at[by] = steps + 1;
  copy.held = copy.held.filter((one) => one.by !== by);
  copy.waiting = copy.waiting.filter((one) => one.by !== by);
  for (const one of [...copy.waiting]) {
    const before = copy.waiting.slice(0, copy.waiting.indexOf(one));
    if ([...copy.held, ...before].some((other) => other.by !== one.by && conflicts(other.lock, one.lock))) continue;
    copy.waiting.splice(copy.waiting.indexOf(one), 1);
    grant(copy, one.by, one.lock);
  }
  return copy;
}

function checkHolders({ held, io }: State): void {
  const exclusive = held.filter(({ lock }) => lock.on === "all" && lock.mode === "exclusive");
  const writers = held.filter(({ lock }) => lock.on === "all" || lock.on.startsWith("environment"));
  if (exclusive.some(({ by }) => writers.some((one) => one.by !== by))) io.broken ??= "work on everything ran beside other work";
  const environments = held.filter(({ lock }) => lock.on.startsWith("environment")).map(({ lock }) => lock.on);
  if (new Set(environments).size < environments.length) io.broken ??= "an environment has two writers";
}

/** Visits every state. Returns the rules that were broken in some interleaving, and the number of states. */
function explore(transactions: readonly Transaction[]): { broken: string[]; states: number } {
  const io: Io = { numbers: 0, events: {}, epochs: { 1: 1, 2: 1 }, mails: 0, broken: null };
  const first: State = { at: transactions.map(() => 0), own: transactions.map(() => ({})), held: [], waiting: [], io };
  const open = [first];
  const seen = new Set([JSON.stringify(first)]);
  const broken = new Set<string>();
  for (let state = open.pop(); state !== undefined; state = open.pop()) {
    if (state.io.broken !== null) {
      broken.add(state.io.broken);
      continue;
    }
    const next = follow(state, transactions);
    const isStuck =
      state.waiting.length > 0 &&
      state.at.every((at, by) => at > (transactions[by]?.steps.length ?? 0) || state.waiting.some((one) => one.by === by));
    if (isStuck) broken.add("a deadlock");
    for (const one of next) {
      const text = JSON.stringify(one);
      if (seen.has(text)) continue;
      seen.add(text);
      open.push(one);
    }
  }
  return { broken: [...broken].sort(), states: seen.size };
}

const SHARED: Step = { lock: { on: "all", mode: "shared" } };
const EXCLUSIVE: Step = { lock: { on: "all", mode: "exclusive" } };
const environment = (id: number): Step => ({ lock: { on: `environment ${id}`, mode: "exclusive" } });
const within = (id: number): Step[] => [SHARED, environment(id)];
const APP: Step = { lock: { on: "app shop", mode: "exclusive" } };

const takeNumber: Step = {
  work: (io, own) => {
    io.numbers += 1;
    own.number = io.numbers;
  },
};
const storeEvent =
  (id: number) =>
  (io: Io, { number = 0 }: Own): void => {
    const earlier = io.events[id] ?? [];
    if (number <= (earlier.at(-1) ?? 0)) io.broken ??= "event numbers do not grow in the order of the commits";
    io.events[id] = [...earlier, number];
  };
const event = (id: number, locks: readonly Step[] = within(id)): Transaction => ({
  what: `an event of environment ${id}`,
  steps: [...locks, takeNumber],
  commit: storeEvent(id),
  mayStop: true,
});

/** The work of a node that held the lease with epoch 1. */
const fenced = (id: number): Transaction => ({
  what: `an attempt of environment ${id}`,
  steps: [
    ...within(id),
    {
      work: (io, own) => {
        own.holds = io.epochs[id] === 1 ? 1 : 0;
      },
    },
  ],
  commit: (io, { holds }) => {
    if (holds === 1 && io.epochs[id] !== 1) io.broken ??= "a former holder's write is committed";
  },
  mayStop: true,
});
const takeover = (id: number, locks: readonly Step[] = within(id)): Transaction => ({
  what: `another node takes the lease of environment ${id}`,
  steps: locks,
  commit: (io) => {
    io.epochs[id] = (io.epochs[id] ?? 0) + 1;
  },
});
const renewal: Transaction = { what: "a node renews its leases", steps: within(0), commit: () => undefined, mayStop: true };

const everything = (what = "an app is deleted"): Transaction => ({ what, steps: [EXCLUSIVE, takeNumber], commit: storeEvent(1), mayStop: true });

/** A mail of an app whose limit of one mail counts over its environments. */
const mail = (id: number, locks: readonly Step[] = [...within(id), APP]): Transaction => ({
  what: `a mail from environment ${id}`,
  steps: [
    ...locks,
    {
      work: (io, own) => {
        own.may = io.mails < 1 ? 1 : 0;
      },
    },
  ],
  commit: (io, { may = 0 }) => {
    io.mails += may;
    if (io.mails > 1) io.broken ??= "two environments of an app exceed its limit";
  },
  mayStop: true,
});

describe("in every interleaving, the order all, environment, app keeps one writer for each environment and never deadlocks", () => {
  test.each<[string, Transaction[]]>([
    ["events of two environments and of one", [event(1), event(1), event(2), event(2)]],
    ["events next to work on everything", [event(1), event(2), everything(), everything("an owner leaves")]],
    ["attempts, a takeover of their lease, and a renewal", [fenced(1), fenced(1), takeover(1), renewal]],
    ["attempts, takeovers of two leases, and work on everything", [fenced(1), fenced(2), takeover(1), takeover(2), everything()]],
    ["mails of one app from two environments", [mail(1), mail(2), event(1), everything()]],
    ["a node that renews while events and everything wait", [renewal, renewal, event(1), everything()]],
  ])("%s", (_what, transactions) => {
    const { broken, states } = explore(transactions);
    expect(broken).toEqual([]);
    expect(states).toBeGreaterThan(100);
  });
});

describe("the model finds what another order would break", () => {
  test.each<[string, Transaction[], string]>([
    ["the environment before all", [event(1, [environment(1), SHARED]), event(1), everything()], "a deadlock"],
    ["two environments in any order", [event(1, [...within(1), environment(2)]), event(2, [...within(2), environment(1)])], "a deadlock"],
    ["a shared lock that becomes exclusive", [event(1, [SHARED, EXCLUSIVE]), event(2, [SHARED, EXCLUSIVE])], "a deadlock"],
    [
      "an environment's work that does not take the lock of all",
      [event(1, [environment(1)]), everything()],
      "work on everything ran beside other work",
    ],
    [
      "a number that is taken before the environment's lock",
      [1, 1].map((id) => ({ ...event(id), steps: [takeNumber, ...within(id)] })),
      "event numbers do not grow in the order of the commits",
    ],
    ["a takeover under the lock of the renewals", [fenced(1), takeover(1, within(0))], "a former holder's write is committed"],
    ["a limit of the app that is counted without its row", [mail(1, within(1)), mail(2, within(2))], "two environments of an app exceed its limit"],
  ])("%s", (_what, transactions, broken) => {
    expect(explore(transactions).broken).toContain(broken);
  });
});
