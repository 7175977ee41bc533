/** Fix and replay: through every edit of a relay's actions, no completed action is repeated automatically or lost without a report. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Json } from "../../src/base/json.ts";
import { openKey, type PriorWork, type Slot, type Work } from "../../src/engine/event/effect.ts";
import { makeWorkKey } from "../../src/engine/event/run.ts";
import { bindKeys, listStrayIntents, reconcileActions, type Step } from "../../src/engine/event/step-reconciliation.ts";
import { formatTextDifference } from "../../src/engine/event/step-text.ts";
import { type LiveAction, openActions } from "../../src/rules/relay/live-relay.ts";
import { EditModel, type ModelAction } from "../kit/edit-model.ts";

/** Short codes: `5` gives 5 credits, `a1` writes to collection a, `m1` sends mail, `c1` calls a URL. */
function action(word: string): { type: string; [field: string]: Json } {
  if (word.startsWith("m")) return { type: "email_person", subject: word, text: "Hello" };
  if (word.startsWith("c")) return { type: "call_url", url: `https://example.com/${word}` };
  if (/^[a-z]/.test(word)) return { type: "write_record", collection: word.slice(0, 1), data: { word } };
  return { type: "grant_credits", amount: Number(word) };
}

function wordOf(text: unknown): string {
  const { amount, data, subject, url } = text as Record<string, Json>;
  return String(amount ?? (data as { word?: string } | undefined)?.word ?? subject ?? String(url).slice(-2));
}

const list = (words: string): LiveAction[] => openActions(words.split(" ").filter(Boolean).map(action));

/** The stored state of an event after its attempts, without a database. */
class Life {
  readonly works = new Map<string, Work>();
  readonly #actions = new Map<string, unknown>();
  #slots: Slot[] = [];
  done: string[] = [];

  get memory(): PriorWork {
    return { works: this.works, slots: this.#slots, actions: this.#actions };
  }

  steps(actions: readonly LiveAction[], chosen: readonly number[] = []): Step[] {
    const plan = reconcileActions(actions, this.memory);
    const keys = chosen.flatMap((at) => (plan[at] === undefined ? [] : [plan[at].key]));
    return reconcileActions(actions, this.memory, keys);
  }

  /** Runs until action `stopAt`, and returns what each step reported. */
  attempt(actions: readonly LiveAction[], stopAt = actions.length, chosen: readonly number[] = []): string[] {
    const steps = this.steps(actions, chosen);
    const told = steps.slice(0, stopAt).map((step, at) => this.#take(actions[at] as LiveAction, step));
    const keys = bindKeys(steps);
    this.#slots = actions.map((one, at) => ({ ...one, ...openKey(keys[at] ?? "", this.works) }));
    for (const { fingerprint, action: text } of actions) this.#actions.set(fingerprint, text);
    return told;
  }

  #take({ type, repeats, target, fingerprint, action: text }: LiveAction, step: Step): string {
    if (step.does === "edited") return `edited (was ${wordOf(step.was)})`;
    if (step.does !== "run") return "skipped";
    this.done.push(wordOf(text));
    if (repeats) return "done";
    if (this.works.has(step.key)) throw new Error("The primary key refuses it.");
    this.works.set(step.key, {
      key: step.key,
      type,
      target,
      fingerprint,
      ordinal: Number(step.key.split("\n").at(-1)),
      state: "done",
      after: undefined,
      doneAt: 0,
      personId: null,
    });
    return "done";
  }
}

describe("after an attempt that stopped, the current list is matched with completed actions", () => {
  const rows: [sentence: string, first: string, stopAt: number, then: string, told: string[], done: string[]][] =
    [
      ["a retry of the same list skips completed actions and runs the rest", "5 a1", 1, "5 a1", ["skipped", "done"], ["5", "a1"]],
      ["an equal action is found at any place", "5 a1 7", 2, "7 a1 5", ["done", "skipped", "skipped"], ["5", "a1", "7"]],
      ["a new action inserted before a completed one runs, and the completed one is skipped", "5 a1", 1, "700 5 a1", ["done", "skipped", "done"], ["5", "700", "a1"]],
      ["a failed and fixed action runs, and is not taken for the completed one before it", "5 7", 1, "5 8", ["skipped", "done"], ["5", "8"]],
      ["a fixed action runs although the completed one before it was removed", "5 7", 1, "8", ["done"], ["5", "8"]],
      ["two equal actions need two completed ones", "5 a1", 1, "5 5 a1", ["skipped", "done", "done"], ["5", "5", "a1"]],
      ["an action edited after it completed is skipped and reported", "5 a1", 1, "6 a1", ["edited (was 5)", "done"], ["5", "a1"]],
      ["of two edited actions with one completed, one runs and one is reported", "5 7", 1, "6 8", ["done", "edited (was 5)"], ["5", "6"]],
      ["another target is another action", "a1 5", 1, "b1 5", ["done", "done"], ["a1", "b1", "5"]],
      ["a call is sent again, whether edited or not", "c1 5", 1, "c2 5", ["done", "done"], ["c1", "c2", "5"]],
      ["an edited mail is not sent automatically if the old one was sent", "m1 5", 1, "m2 5", ["edited (was m1)", "done"], ["m1", "5"]],
      ["a mail that was not sent is sent with its new text", "5 m1", 1, "5 m2", ["skipped", "done"], ["5", "m2"]],
      ["a deleted action is ignored", "5 7 a1", 2, "a1", ["done"], ["5", "7", "a1"]],
    ]; // biome-ignore format: one row a line
  test.each(rows)("%s", (_sentence, first, stopAt, then, told, done) => {
    const life = new Life();
    life.attempt(list(first), stopAt);
    expect(life.attempt(list(then))).toEqual(told);
    expect(life.done).toEqual(done);
  });
});

describe("an action that was edited after it completed", () => {
  test("stays skipped in later attempts, with the same report", () => {
    const life = new Life();
    life.attempt(list("5 a1"), 1);
    expect(life.attempt(list("6 a1"), 1)).toEqual(["edited (was 5)"]);
    expect(life.attempt(list("6 a1"))).toEqual(["edited (was 5)", "done"]);
    expect(life.attempt(list("6 a1"))).toEqual(["edited (was 5)", "skipped"]);
  });

  test("is skipped without a report once it has its old text again", () => {
    const life = new Life();
    life.attempt(list("5"));
    life.attempt(list("6"));
    expect(life.attempt(list("5"))).toEqual(["skipped"]);
    expect(life.done).toEqual(["5"]);
  });

  test("runs once if a replay selected it, and is then completed", () => {
    const life = new Life();
    life.attempt(list("5"));
    expect(life.attempt(list("6"), 1, [0])).toEqual(["done"]);
    expect(life.attempt(list("6"))).toEqual(["skipped"]);
    expect(life.attempt(list("5 6"))).toEqual(["skipped", "skipped"]);
    expect(life.done).toEqual(["5", "6"]);
  });

  test("of two equal ones runs if selected, and the other stays skipped", () => {
    const life = new Life();
    life.attempt(list("5 7"));
    expect(life.attempt(list("6 6"), 2, [1])).toEqual(["edited (was 5)", "done"]);
    expect(life.attempt(list("6 6"))).toEqual(["skipped", "edited (was 5)"]);
    expect(life.done).toEqual(["5", "7", "6"]);
  });

  test("stays skipped if a completed one with its old text is in the list too", () => {
    const life = new Life();
    life.attempt(list("5 5"));
    expect(life.attempt(list("7 5 7"))).toEqual(["edited (was 5)", "skipped", "done"]);
    expect(life.attempt(list("7 1 5 7"))).toEqual(["skipped", "done", "skipped", "edited (was 5)"]);
    expect(life.done).toEqual(["5", "5", "7", "1"]);
  });

  test("is a new action if the completed text is in the list too", () => {
    const life = new Life();
    life.attempt(list("5"));
    life.attempt(list("6"));
    expect(life.attempt(list("5 6"))).toEqual(["skipped", "done"]);
  });
});

test("a mail in progress is matched with its own action before one that was edited into the same text", () => {
  const [old, present] = list("m1 m2") as [LiveAction, LiveAction];
  const workOf = ({ target, fingerprint }: LiveAction, state: Work["state"]): Work => {
    const key = makeWorkKey({ type: "email_person", target, fingerprint }, 1);
    return { key, type: "email_person", state, target, fingerprint, ordinal: 1, after: undefined, doneAt: null, personId: null };
  };
  const [sent, begun] = [workOf(old, "done"), workOf(present, "intended")];
  const memory: PriorWork = {
    works: new Map([sent, begun].map((one) => [one.key, one])),
    // The first was sent as m1 and edited into m2 since then.
    slots: [
      { ...present, key: sent.key },
      { ...present, key: begun.key },
    ],
    actions: new Map([[old.fingerprint, old.action]]),
  };
  expect(reconcileActions(list("m2"), memory)).toMatchObject([{ does: "settle", key: begun.key }]);
});

describe("a selected mail that was interrupted", () => {
  const [old, fresh] = list("m1 m2") as [LiveAction, LiveAction];
  const work = (of: LiveAction, state: Work["state"]): Work => {
    const { target, fingerprint } = of;
    const key = makeWorkKey(of, 1);
    const known = { target, fingerprint, ordinal: 1, after: undefined, doneAt: null, personId: null };
    return { key, type: "email_person", state, ...known };
  };
  const [sent, begun] = [work(old, "done"), work(fresh, "intended")];
  const works = new Map([sent, begun].map((one) => [one.key, one]));
  const slots = [{ ...fresh, ...openKey([begun.key, sent.key], works) }];
  const memory: PriorWork = { works, slots, actions: new Map([[old.fingerprint, old.action]]) };

  test("still covers the mail that it replaces until it is known to be sent", () => {
    const steps = reconcileActions(list("m2"), memory);
    expect(steps).toMatchObject([{ does: "settle", key: begun.key, chosenOver: sent }]);
    expect(bindKeys(steps)).toEqual([[begun.key, sent.key]]);
    const dropped = new Map([[sent.key, sent]]);
    const after = {
      ...memory,
      works: dropped,
      slots: [{ ...fresh, ...openKey([begun.key, sent.key], dropped) }],
    };
    expect(reconcileActions(list("m2 m2"), after).map(({ does }) => does)).toEqual(["edited", "run"]);
  });

  test("does not cover a second mail with its text", () => {
    expect(reconcileActions(list("m2 m2"), memory).map(({ does }) => does)).toEqual(["settle", "run"]);
  });

  test("is settled before the list, so that the mail it replaced is free for another action once it was sent", () => {
    expect(listStrayIntents(list("m2 m1"), memory)).toEqual([begun]);
    const left = new Map(works).set(begun.key, { ...begun, state: "done" });
    const after = { ...memory, works: left, slots: [{ ...fresh, ...openKey([begun.key, sent.key], left) }] };
    expect(reconcileActions(list("m2 m1"), after).map(({ does }) => does)).toEqual(["skip", "skip"]);
  });
});

describe("actions completed before fingerprints existed", () => {
  const old = (type: string, target: string, ordinal: number): Work => ({
    key: `${type}\n${target}\n${ordinal}`,
    type,
    target,
    fingerprint: null,
    ordinal,
    state: "done",
    after: undefined,
    doneAt: null,
    personId: null,
  });
  const aged = (...works: Work[]): Life => {
    const life = new Life();
    for (const work of works) life.works.set(work.key, work);
    return life;
  };

  test("are matched by their place among those of their type and target", () => {
    const life = aged(old("grant_credits", "credits", 1), old("write_record", "a", 1));
    expect(life.attempt(list("5 a1 7"))).toEqual(["skipped", "skipped", "done"]);
    expect(life.attempt(list("7 a1 5"))).toEqual(["skipped", "skipped", "skipped"]);
  });

  test("can be selected to run, because their text is unknown", () => {
    const life = aged(old("grant_credits", "credits", 1));
    expect(life.steps(list("5"))).toMatchObject([{ does: "skip", sure: false }]);
    expect(life.attempt(list("5"), 1, [0])).toEqual(["done"]);
    expect(life.attempt(list("5"))).toEqual(["skipped"]);
  });

  test("count as edited once their text differs from the one after the upgrade", () => {
    const life = aged(old("grant_credits", "credits", 1));
    life.attempt(list("5"));
    expect(life.attempt(list("6"))).toEqual(["edited (was 5)"]);
  });
});

test("the difference of two texts names the fields with their old and new values", () => {
  const old = { type: "email_person", subject: "Old", text: "Hello" };
  expect(formatTextDifference(old, { type: "email_person", subject: "New", text: "Hello", kind: "account" })).toBe(
    'kind was absent and is "account"; subject was "Old" and is "New"',
  );
  expect(formatTextDifference({ data: { a: 1, b: 2 } }, { data: { b: 2, a: 1 } })).toBe("");
  expect(formatTextDifference({ text: "é".repeat(500) }, { text: "x" })).toContain("…");
});

test("equal actions are equal for any order of their fields", () => {
  const [one, other] = openActions([
    { type: "write_record", collection: "a", data: { x: 1, y: [{ p: 1, q: 2 }] } },
    { data: { y: [{ q: 2, p: 1 }], x: 1 }, collection: "a", type: "write_record" },
  ] as never);
  expect(one?.fingerprint).toBe(other?.fingerprint ?? "");
  expect(makeWorkKey(one as LiveAction, 1)).toBe(`write_record\na\n${one?.fingerprint}\n1`);
});

const words = fc.constantFrom("1", "2", "3", "a1", "a2", "b1", "m1", "m2", "c1");
const attempt = fc.record({
  list: fc.array(words, { minLength: 1, maxLength: 5 }),
  keep: fc.boolean(),
  stop: fc.nat(6),
  choose: fc.uniqueArray(fc.nat(4), { maxLength: 3 }),
});

/** One edit of the previous list: insert, delete, exchange, change, or leave it. */
const edit = fc.record({
  how: fc.constantFrom("insert", "delete", "exchange", "change", "leave"),
  at: fc.nat(5),
  to: fc.nat(5),
  word: words,
});

const modelOf = (word: string): ModelAction => {
  const [live] = openActions([action(word)]);
  if (live === undefined) throw new Error("no action");
  return { of: `${live.type} ${live.target}`, text: word, repeats: live.type === "call_url" };
};

function change(before: readonly string[], { how, at, to, word }: { how: string; at: number; to: number; word: string }): string[] {
  const after = [...before];
  const place = at % Math.max(1, after.length);
  if (how === "insert") after.splice(place, 0, word);
  else if (how === "delete" && after.length > 1) after.splice(place, 1);
  else if (how === "change") after[place] = word;
  else if (how === "exchange") {
    const other = to % after.length;
    [after[place], after[other]] = [after[other] as string, after[place] as string];
  }
  return after.slice(0, 10);
}

test("any edits between attempts match the model: no action runs twice, and none is lost without a report", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(attempt, edit), { minLength: 2, maxLength: 9 }), (turns) => {
      const life = new Life();
      const model = new EditModel();
      let present: string[] = turns[0]?.[0].list ?? ["1"];
      for (const [turn, mutation] of turns) {
        present = turn.keep ? change(present, mutation) : turn.list;
        const wanted = present.map(modelOf);
        const stopAt = Math.min(turn.stop, present.length);
        const foreseen = model.foresee(wanted);
        const chosen = turn.choose.filter((at) => typeof foreseen[at] === "object");
        const before = countOf(model.works.map(({ text }) => text));
        const told = life.attempt(list(present.join(" ")), stopAt, chosen);
        const expected = model.attempt(wanted, stopAt, new Set(chosen));
        expect(told.map((word) => word.replace(/ .*/, ""))).toEqual(expected);
        expectSound(present, told, before, chosen);
      }
      const repeats = (word: string) => word.startsWith("c");
      expect(life.done.filter((word) => !repeats(word))).toEqual(model.works.map(({ text }) => text));
      expect(life.done.filter(repeats)).toEqual(model.sent);
    }),
    { numRuns: 3_000 },
  );
});

/** Checks each attempt independently of the model. A text runs at most as often as it needs, and is skipped at most as often as it completed. */
function expectSound(present: string[], told: string[], before: Map<string, number>, chosen: number[]): void {
  for (const text of new Set(present.filter((word) => !word.startsWith("c")))) {
    const ran = told.filter((word, at) => present[at] === text && word === "done" && !chosen.includes(at)).length;
    const wanted = present.filter((word) => word === text).length;
    expect(ran).toBeLessThanOrEqual(Math.max(0, wanted - (before.get(text) ?? 0)));
    const skipped = told.filter((word, at) => present[at] === text && word === "skipped").length;
    expect(skipped).toBeLessThanOrEqual(before.get(text) ?? 0);
  }
}

function countOf(texts: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}
