/**
 * An independent model of one event through edits of its relay's actions. It implements decisions section 3 ("same work on retry and replay") with
 * plain lists of texts. It uses no keys, fingerprints or rows.
 */

/** An action of the model. `of` is its type and target. */
export interface ModelAction {
  of: string;
  text: string;
  /** True if the action sends again each time, even after earlier work. */
  repeats?: boolean;
}

interface Work {
  of: string;
  text: string;
}

interface Slot {
  action: ModelAction;
  work: Work | null;
}

/** The state of an action's work: new, done, or done under another text. */
type Fate = "runs" | "done" | { was: string };

export class EditModel {
  readonly works: Work[] = [];
  /** Texts that repeating actions sent, in order. */
  readonly sent: string[] = [];
  #slots: Slot[] = [];

  /** Returns the fate of every action of the list, before an operator chooses any to run anyway. */
  foresee(list: readonly ModelAction[]): Fate[] {
    return this.#lay(list).map(({ fate }) => fate);
  }

  /**
   * Runs an attempt that ends before action `stopAt` does its work. If `stopAt` is the list's length, the attempt succeeds. `chosen` has the indexes
   * of actions that run although their work was done under another text. Returns the result of each action that the attempt reached.
   */
  attempt(list: readonly ModelAction[], stopAt: number, chosen: ReadonlySet<number> = new Set()): ("done" | "skipped" | "edited")[] {
    const laid = this.#lay(list);
    const told: ("done" | "skipped" | "edited")[] = [];
    this.#slots = laid.map(({ action, slot, fate }, index) => {
      if (fate === "done" || (fate !== "runs" && !chosen.has(index))) {
        if (index < stopAt) told.push(fate === "done" ? "skipped" : "edited");
        return { action, work: slot?.work ?? null };
      }
      if (index >= stopAt) {
        // An action that the attempt did not reach keeps the work that is assigned to it.
        return { action, work: fate === "runs" ? null : (slot?.work ?? null) };
      }
      told.push("done");
      if (action.repeats === true) {
        this.sent.push(action.text);
        return { action, work: null };
      }
      const work = { of: action.of, text: action.text };
      this.works.push(work);
      return { action, work };
    });
    return told;
  }

  #lay(list: readonly ModelAction[]): { action: ModelAction; slot: Slot | null; fate: Fate }[] {
    const held = new Set(this.#slots.map(({ work }) => work));
    const before = this.works.filter((work) => !held.has(work));
    const free: Slot[] = [
      ...this.#slots.filter(({ action }) => action.repeats !== true),
      ...before.map((work) => ({ action: { of: work.of, text: work.text }, work })),
    ];
    const laid = list.map((action) => ({ action, slot: null as Slot | null }));
    const take = (fits: (slot: Slot, action: ModelAction) => boolean): void => {
      for (const one of laid) {
        if (one.slot !== null || one.action.repeats === true) continue;
        const at = free.findIndex((slot) => slot.action.of === one.action.of && fits(slot, one.action));
        if (at >= 0) one.slot = free.splice(at, 1)[0] ?? null;
      }
    };
    // Equal texts match first: work of exactly this text (work of an edited action last), then an action of this text that did other work, then an
    // action of this text without work.
    take((slot, action) => slot.work?.text === action.text && slot.action.text === action.text);
    take((slot, action) => slot.work?.text === action.text);
    take((slot, action) => slot.work !== null && slot.action.text === action.text);
    take((slot, action) => slot.action.text === action.text);
    // The rest matches in order, actions without work first.
    take((slot) => slot.work === null);
    take(() => true);
    return laid.map(({ action, slot }) => {
      const work = slot?.work ?? null;
      const fate: Fate = work === null ? "runs" : work.text === action.text ? "done" : { was: work.text };
      return { action, slot, fate };
    });
  }
}
