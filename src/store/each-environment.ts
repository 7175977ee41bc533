/** Runs work for the items of each environment, so that an environment whose writes are held does not delay the others. */

/** Calls `work` with the items of each environment, all at the same time. Throws the first error after every call has ended. */
export async function eachEnvironment<Item extends { environmentId: number }>(
  items: readonly Item[],
  work: (environmentId: number, own: [Item, ...Item[]]) => Promise<unknown>,
): Promise<void> {
  const groups = Map.groupBy(items, ({ environmentId }) => environmentId);
  const ended = await Promise.allSettled(
    [...groups].map(([environmentId, own]) => work(environmentId, own as [Item, ...Item[]])),
  );
  for (const one of ended) if (one.status === "rejected") throw one.reason;
}
