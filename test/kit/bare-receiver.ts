/**
 * A receiver and the health that it tells, on a store, with nobody behind them: no runner, no terminal, no metrics. By hand, for it stands beside
 * a service on its store, or begins again on one, and what it tells is read with no event taken up.
 */
import { Health } from "../../src/engine/health/health.ts";
import { SharedHealth } from "../../src/engine/health/shared-health.ts";
import { SilenceCheck } from "../../src/engine/health/silence-check.ts";
import { Receiver } from "../../src/engine/receiver/receive.ts";

/** `shared`: others stand beside it on its store. */
type Deps = ConstructorParameters<typeof Receiver>[0] & { shared?: boolean } & Pick<ConstructorParameters<typeof SilenceCheck>[0], "looks">;

export interface BareReceiver {
  receiver: Receiver;
  health: Health;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Not begun: what an earlier one knew is read, and looked at now and then, after `start`. */
export function makeBareReceiver(deps: Omit<Deps, "local" | "teller" | "health" | "runner" | "metrics">): BareReceiver {
  const health = deps.shared === true ? new SharedHealth(deps) : new Health(deps);
  const watch = new SilenceCheck({ ...deps, health });
  const receiver = new Receiver({
    ...deps,
    health,
    local: false,
    teller: { notifyCall: () => undefined, notifyUnknownCall: () => undefined },
    metrics: { recordRequest: () => undefined },
    runner: {
      enqueue: () => undefined,
      prefetch: () => [],
      startInline: () => ({ run: async () => null, finalize: async () => undefined }),
    },
  });
  const stop = async (): Promise<void> => {
    await watch.stop();
    await receiver.stop();
  };
  return { receiver, health, start: () => watch.start(), stop };
}
