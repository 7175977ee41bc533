/**
 * A receiver and its health state on a store, without a runner, a terminal or metrics. Tests create it next to a service on the same store, or again
 * on one. They can then read the health state while no event runs.
 */
import { Health } from "../../src/engine/health/health.ts";
import { SharedHealth } from "../../src/engine/health/shared-health.ts";
import { SilenceCheck } from "../../src/engine/health/silence-check.ts";
import { Receiver } from "../../src/engine/receiver/receive.ts";

/** `shared` means that other nodes use the same store. */
type Deps = ConstructorParameters<typeof Receiver>[0] & { shared?: boolean } & Pick<ConstructorParameters<typeof SilenceCheck>[0], "looks">;

export interface BareReceiver {
  receiver: Receiver;
  health: Health;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Returns a receiver that has not started. `start` reads the health that an earlier process stored, then checks it regularly. */
export function makeBareReceiver(deps: Omit<Deps, "local" | "notifier" | "health" | "runner" | "metrics">): BareReceiver {
  const health = deps.shared === true ? new SharedHealth(deps) : new Health(deps);
  const watch = new SilenceCheck({ ...deps, health });
  const receiver = new Receiver({
    ...deps,
    health,
    local: false,
    notifier: { notifyCall: () => undefined, notifyUnknownCall: () => undefined },
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
