/**
 * An independent model of one event's life through edits of its relay's actions: the sentence of decisions section 3 ("same work on retry and
 * replay") spelled out over plain lists of texts. It knows nothing of keys, fingerprints or rows.
 */

/** An action of the model: what it is of (type and target), and its text. */
export interface ModelAction {
  of: string;
  text: string;
  /** Sent again each time, whatever was done before. */
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

/** What an action has to do: its work is new, is done, or was done under another text. */
type Fate = "runs" | "done" | { was: string };

export class EditModel {
  readonly works: Work[] = [];
  /** Texts of repeating actions that were sent, in order. */
  readonly sent: string[] = [];
  #slots: Slot[] = [];

  /** The fate of every action of the list, before any is chosen to run all the same. */
  foresee(list: readonly ModelAction[]): Fate[] {
    return this.#lay(list).map(({ fate }) => fate);
  }

  /**
   * An attempt at the list that ends before action `stopAt` does its work (the list's length: it ends well). `chosen`: indexes that run
   * although their work was done under another text. Answers what each action that was come to said.
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
        // What was not come to keeps the work that stands for it.
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
    // Equal ones first: work of that very text (such as stands for an edited action last), what stood under that text for other work, and
    // what had not done its work.
    take((slot, action) => slot.work?.text === action.text && slot.action.text === action.text);
    take((slot, action) => slot.work?.text === action.text);
    take((slot, action) => slot.work !== null && slot.action.text === action.text);
    take((slot, action) => slot.action.text === action.text);
    // Then the rest in order: what had not done its work before what had.
    take((slot) => slot.work === null);
    take(() => true);
    return laid.map(({ action, slot }) => {
      const work = slot?.work ?? null;
      const fate: Fate = work === null ? "runs" : work.text === action.text ? "done" : { was: work.text };
      return { action, slot, fate };
    });
  }
}
