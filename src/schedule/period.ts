/** When a schedule's periods begin, by its cron expression in UTC. It never reads the clock and knows no relay. */
import { type CronExpression, CronExpressionParser } from "cron-parser";
import { cronOf, type ScheduleTrigger } from "../trigger/schedule.ts";

export class Period {
  readonly #cron: CronExpression;
  /** The period looked at last: the scheduler asks for the present one again and again. Milliseconds since the epoch. */
  #start = Number.POSITIVE_INFINITY;
  #next = Number.NEGATIVE_INFINITY;

  constructor(trigger: ScheduleTrigger) {
    this.#cron = CronExpressionParser.parse(cronOf(trigger), { tz: "UTC" });
  }

  /** The beginning of the period that `ms` lies in. */
  startAt(ms: number): number {
    this.#find(ms);
    return this.#start;
  }

  /** The first beginning after `ms`. */
  nextAfter(ms: number): number {
    this.#find(ms);
    return this.#next;
  }

  /** Every beginning after `afterMs` and not after `untilMs`, in order. */
  list(afterMs: number, untilMs: number): number[] {
    if (this.startAt(untilMs) <= afterMs) return [];
    const starts: number[] = [];
    this.#cron.reset(new Date(afterMs));
    for (let start = this.#cron.next().getTime(); start <= untilMs; start = this.#cron.next().getTime())
      starts.push(start);
    return starts;
  }

  #find(ms: number): void {
    if (this.#start <= ms && ms < this.#next) return;
    this.#cron.reset(new Date(ms));
    this.#next = this.#cron.next().getTime();
    this.#start = this.#cron.prev().getTime();
  }
}
