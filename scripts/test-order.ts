/**
 * In which order the suites of a run begin: the long ones before all others, for one of them at the very end would run alone, and those that mostly
 * wait spread among those that compute, for several of them at once would leave the processors idle. In about as many seconds as each takes.
 */

const COMPUTING = {
  "test/crash/crash": 45,
  "test/flow/newcomer": 44,
  "test/crash/cluster": 37,
  "test/attack/migrating-start": 36,
  "test/attack/worst-call": 12,
  "test/browser/five-nights": 31,
  "test/flow/soak": 30,
  "test/browser/whole-job": 30,
  "test/flow/silent-failure-scale": 28,
  "test/browser/sweep": 26,
  "test/crash/mail-crash": 26,
  "test/crash/apply-crash": 25,
  "test/flow/move": 24,
  "test/flow/local-truth": 22,
  "test/flow/silent-failure": 22,
  "test/flow/docs-example": 22,
  "test/flow/approval": 20,
  "test/browser/relay-editor": 20,
  "test/browser/way-out": 20,
  "test/browser/relay-story": 18,
  "test/flow/import-missed-command": 18,
  "test/crash/backup-crash": 18,
  "test/crash/alert-crash": 18,
  "test/flow/sale-order": 16,
  "test/browser/hostile-payload": 16,
  "test/browser/settings-room": 15,
  "test/browser/approval": 15,
  "test/attack/outbound-kept": 14,
  "test/rule/backup": 14,
  "test/rule/postgres-flush": 14,
  "test/browser/live": 13,
  "test/rule/runner-crash": 13,
  "test/attack/signin-lockout": 13,
  "test/rule/retention-size": 12,
  "test/flow/run-memory": 12,
  "test/browser/session": 12,
};
const WAITING = {
  "test/flow/silent-database": 60,
  "test/rule/postgres-break": 58,
  "test/flow/away-database": 58,
  "test/flow/unheard-node": 50,
  "test/flow/migrating-node": 32,
  "test/crash/login-crash": 30,
  "test/rule/name-lookup": 30,
  "test/attack/full-disk": 22,
  "test/rule/postgres-silence": 20,
  "test/crash/bulk-replay-crash": 20,
  "test/flow/promote-story": 17,
  "test/browser/laptop-story": 15,
  "test/browser/login": 14,
  "test/attack/data-directory": 14,
  "test/flow/node-readiness": 13,
};
/** How often as much computes as waits while both last: two of three lanes. */
const SHARE = 2;
/** On PostgreSQL; the rest takes a few seconds each. */
const ON_POSTGRES = {
  "test/flow/schedule": 36,
  "test/flow/receiver": 34,
  "test/rule/fruitless": 33,
  "test/rule/silence": 30,
  "test/flow/import-missed": 27,
  "test/rule/runner-order": 25,
  "test/flow/recent-call": 24,
  "test/flow/fix-and-replay": 24,
  "test/rule/runner-crash": 24,
  "test/rule/event-row": 23,
  "test/rule/event-state": 23,
  "test/flow/sale-order": 20,
  "test/rule/schedule": 20,
  "test/rule/schedule-clock": 19,
  "test/rule/capture": 19,
  "test/rule/caretaker": 18,
  "test/rule/alert": 18,
  "test/flow/overview": 18,
  "test/flow/sale-nobody": 18,
  "test/flow/event-waits": 17,
  "test/flow/bulk-replay": 16,
  "test/flow/action-rule": 15,
  "test/rule/runner-effect": 14,
  "test/flow/try-now": 13,
  "test/flow/api-account": 12,
  "test/flow/events-expiring": 12,
  "test/flow/sync": 11,
  "test/flow/unknown-call": 10,
};

type Seconds = Readonly<Record<string, number>>;

/** Milliseconds by file, as Bun orders them, the most first; one that has none would come before all that have. */
export function orderFiles(files: readonly string[]): Record<string, number> {
  const long = mixLong().map((name) => `${name}.test.ts`);
  return Object.fromEntries(
    files.map((file) => [file, 1_000 * (1 + (long.includes(file) ? long.length - long.indexOf(file) : 0))]),
  );
}

/** The short ones stand at the end, where several run at once. */
export function longestFirst(suites: readonly string[]): string[] {
  const seconds: Seconds = ON_POSTGRES;
  const of = (file: string): number => seconds[file.replace(/\.test\.ts$/, "")] ?? 1;
  return suites.toSorted((one, other) => of(other) - of(one));
}

/** The longest of each kind first; one that waits begins where those before it have waited for less than their share. */
function mixLong(): string[] {
  const [computing, waiting] = [COMPUTING, WAITING].map((kind: Seconds) => Object.entries(kind));
  const mixed: string[] = [];
  let [computed, waited] = [0, 0];
  for (const [name, seconds] of computing ?? []) {
    const next = waited * SHARE <= computed ? waiting?.shift() : undefined;
    if (next !== undefined) {
      mixed.push(next[0]);
      waited += next[1];
    }
    mixed.push(name);
    computed += seconds;
  }
  return [...mixed, ...(waiting ?? []).map(([name]) => name)];
}
