/**
 * Plays a life of a selling kit against the running service (`relay simulate`), one step after another. It shows what each relay did and what the
 * person has before and after the step. The service makes and signs the requests, and refuses production.
 */
import { sleep } from "../../../base/clock.ts";
import { writeJson } from "../../../base/json.ts";
import { plain } from "../../../base/text.ts";
import type { LifeView } from "../../../insight/simulate/life.ts";
import type { Effect, Holdings } from "../../../insight/simulate/life-effect.ts";
import { requireServerOrService } from "../api/connect.ts";
import type { Remote } from "../api/remote.ts";
import { ANYWHERE, formatRemote } from "../api/target.ts";
import { type Command, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { type Io, programWord } from "../io.ts";
import { paint, toneOf } from "../terminal/screen.ts";

const LOOK_EVERY_MS = 200;
const GIVE_UP_MS = 30_000;
const MAX_DAYS_A_MINUTE = 100_000;
const MINUTE_MS = 60_000;

export const simulate: Command = {
  words: ["simulate"],
  summary: "play a customer's life with a selling kit",
  details:
    "The service makes the requests that the provider sends in this life, signs them with the secret of the source, and receives them as real ones. After each step the command shows what each relay did, and what the person has before and after. Every effect is real: mails are sent and URLs are called. Production refuses a simulation. The kit's page lists its lives: relay docs sell-with-stripe. The exit code is 1 if an event is not done.",
  arguments: [
    { name: "provider", help: "the provider of the selling kit, such as stripe" },
    { name: "life", help: "the life to play, such as subscription-life", optional: true },
  ],
  options: [
    {
      name: "speed",
      value: "<days>",
      otherwise: "no waiting",
      help: "the days of the life in one minute: 60 or 60x waits one second for each day",
    },
    {
      name: "person",
      value: "<address>",
      otherwise: "a new person",
      help: "the address of the customer",
    },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: [
    "relay simulate stripe purchase",
    "relay simulate stripe subscription-life --speed 60x",
    "relay simulate stripe refund --person ada@example.com",
  ],
  async run(input, io) {
    const [kit = "", life = ""] = input.positionals;
    const daysAMinute = readSpeed(input);
    const person = input.text("person");
    const remote = await requireServerOrService(input, io, "relay simulate");
    const asked = { kit, life, ...(person === null ? {} : { person }) };
    const begun = await send(remote, asked);
    const isJson = input.on("json");
    if (!isJson) for (const line of writeStart(begun, remote)) io.print(line);
    const steps: PlayedStep[] = [];
    let before = begun.effect.holdings;
    for (const [at, { day, does }] of begun.steps.entries()) {
      await waitForDay(day - (begun.steps[at - 1]?.day ?? day), daysAMinute, io);
      if (!isJson) io.print(`\nDay ${day}: ${plain(does)}`);
      const played = { kit, life, person: begun.person, run: begun.run, step: at + 1 };
      const { events, settled, holdings } = await awaitEffect(remote, await send(remote, played), io);
      const step = { day, does, events, settled, before, after: holdings };
      steps.push(step);
      if (!isJson) for (const line of writeStep(step, io)) io.print(line);
      before = holdings;
    }
    const { effect: _, step: __, ...about } = begun;
    if (isJson) io.print(writeJson({ simulation: { ...about, steps } }, 2));
    const isDone = steps.every(({ events }) => events.every(({ state }) => state === "done"));
    if (!isJson) io.inform(`\n${writeEnd(begun.person, isDone, io)}`);
    return isDone ? 0 : 1;
  },
};

interface PlayedStep {
  day: number;
  does: string;
  events: Effect["events"];
  /** False if an event still ran when the command gave up. */
  settled: boolean;
  before: Holdings;
  after: Holdings;
}

/** Returns the days of the life that one minute plays; null: without waiting. */
function readSpeed(input: Input): number | null {
  const text = input.text("speed");
  if (text === null) return null;
  const days = Number(/^(\d{1,6})x?$/.exec(text)?.[1] ?? 0);
  if (days >= 1 && days <= MAX_DAYS_A_MINUTE) return days;
  throw new UsageError(
    `--speed is ${JSON.stringify(text)}: write how many days of the life one minute plays, from 1 to ${MAX_DAYS_A_MINUTE}, such as 60 or 60x.`,
  );
}

async function waitForDay(days: number, daysAMinute: number | null, io: Io): Promise<void> {
  if (daysAMinute === null || days <= 0) return;
  const waitMs = (days * MINUTE_MS) / daysAMinute;
  if (io.watched) io.redraw(`Waiting ${Math.ceil(waitMs / 1_000)} s for ${days} days of the life.`);
  await sleep(io.clock, waitMs);
  if (io.watched) io.redraw(null);
}

async function send(remote: Remote, body: object): Promise<LifeView> {
  return (await remote.request<{ simulation: LifeView }>("POST", "/simulations", body)).simulation;
}

/** Waits until the events of the step are final or wait for a retry. */
async function awaitEffect(remote: Remote, { person, effect: first }: LifeView, io: Io): Promise<Effect> {
  const begun = io.clock.monotonicMs();
  const query = new URLSearchParams({ person, events: first.events.map(({ id }) => id).join(",") });
  let effect = first;
  while (!effect.settled && io.clock.monotonicMs() - begun < GIVE_UP_MS) {
    await sleep(io.clock, LOOK_EVERY_MS);
    effect = (await remote.request<{ effect: Effect }>("GET", `/simulations/effect?${query}`)).effect;
  }
  return effect;
}

function writeStart({ title, lifeTitle, person, missing, steps }: LifeView, remote: Remote): string[] {
  const count = steps.length === 1 ? "1 step" : `${steps.length} steps`;
  return [
    `${plain(title)}: ${plain(lifeTitle)}, ${count}, for ${plain(person)} (${formatRemote(remote)}).`,
    ...(missing.length === 0
      ? []
      : [`Not saved here, so their part does nothing: ${missing.map(plain).join(", ")}.`]),
  ];
}

function writeStep({ events, settled, before, after }: PlayedStep, io: Io): string[] {
  const width = Math.max(0, ...events.map(({ relay }) => relay.length));
  return [
    ...events.map((event) => `  ${writeEvent(event, width, io)}`),
    ...(settled ? [] : ["  An event still runs: relay events show <id> says later what it did."]),
    ...writeChanges(before, after).map((line) => `  ${line}`),
  ];
}

function writeEvent(
  { id, relay, state, reason, waits, results }: Effect["events"][number],
  width: number,
  { screen }: Io,
): string {
  const did = results.map(({ type, outcome }) => (outcome === "done" ? type : `${type} ${outcome}`));
  const failed = results.find(({ outcome }) => outcome === "failed")?.message;
  const why = waits ?? failed ?? reason;
  const parts = [did.join(", "), id, ...(state === "done" || why === null ? [] : [plain(why)])];
  return `${plain(relay).padEnd(width)}  ${paint(state, toneOf(state), screen)}  ${parts.filter((one) => one !== "").join("  ")}`;
}

/** Lists what changed for the person, as `credits  0 → 100`. */
function writeChanges(before: Holdings, after: Holdings): string[] {
  const rows: [name: string, before: string, after: string][] = [
    ["access", writeNames(before.access), writeNames(after.access)],
    ["plan", before.plan ?? "none", after.plan ?? "none"],
    ["credits", String(before.credits), String(after.credits)],
    ["receipts", writeNames(before.receipts), writeNames(after.receipts)],
  ];
  const changed = rows.filter(([, one, other]) => one !== other);
  if (changed.length === 0) return ["Nothing changed for the person."];
  return changed.map(([name, one, other]) => `${name.padEnd(8)}  ${plain(one)} → ${plain(other)}`);
}

function writeNames(names: readonly string[]): string {
  return names.length === 0 ? "none" : names.toSorted().join(", ");
}

function writeEnd(person: string, isDone: boolean, io: Io): string {
  const relay = programWord(io);
  const more = `The person: ${relay} people show ${plain(person)}`;
  return isDone ? more : `Not every event is done: ${relay} events show <id> says why. ${more}`;
}
