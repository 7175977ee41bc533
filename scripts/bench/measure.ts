/** The shape of one measure of the bench, and what a run of the bench gives to it. */
import type { Figure } from "./figure.ts";

export interface Measure {
  /** The name that `--only` takes. */
  name: string;
  /** The line of `--help` that says what is measured. */
  what: string;
  /** True if servers get one processor and their load another. Browsers and several nodes need all processors. */
  pinned: boolean;
  /**
   * Returns the figures in reading order. Throws LeftOut when this machine lacks what the measure needs. Any other error means that the measure
   * is broken: the bench reports it and runs the other measures.
   */
  measure(run: Run): Promise<Figure[]>;
}

export interface Run {
  /** Makes a round that only shows that each measure works. It lasts seconds, and no goal is judged. */
  tiny: boolean;
  /** Length of one load in seconds. */
  seconds: number;
  /** Length in seconds of the warm-up load, during which the runtime compiles the code. */
  warmUpSeconds: number;
  /** Number of loads of the product, each next to a load of its limit. Figures are medians of them. */
  rounds: number;
  /** Length in seconds of the load that must not leave a queue. */
  sustainedSeconds: number;
  /** Events in a filled store. */
  rows: number;
  /** The folder of filled stores, which measures of one run share. */
  stores: string;
  /** The command `relay`: run from source, or an executable. */
  relay: readonly string[];
  /** A PostgreSQL URL whose user can create databases. If it is null, the bench starts the embedded PostgreSQL. */
  database: string | null;
  /** Prints each call of a measure that makes hundreds. */
  verbose: boolean;
}

/** Reports that the machine lacks something that a measure needs, for example a browser. The message names it. */
export class LeftOut extends Error {}
