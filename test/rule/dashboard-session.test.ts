/** The session of the dashboard: a load that a later one overtook returns the later answer, so that no caller continues with the older one. */
import { afterAll, expect, test } from "bun:test";

const answers: PromiseWithResolvers<Response>[] = [];
const replaced = { fetch: globalThis.fetch };
const page = { addEventListener: () => undefined, location: new URL("http://relay.example/"), document: { addEventListener: () => undefined } };
const former = Object.keys(page).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const);
for (const [name, value] of Object.entries(page)) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
globalThis.fetch = Object.assign(
  () => {
    const answer = Promise.withResolvers<Response>();
    answers.push(answer);
    return answer.promise;
  },
  { preconnect: () => undefined },
);
afterAll(() => {
  for (const [name, descriptor] of former)
    if (descriptor === undefined) Reflect.deleteProperty(globalThis, name);
    else Object.defineProperty(globalThis, name, descriptor);
  Object.assign(globalThis, replaced);
});

const answer = (apps: string[]) => Response.json({ owner: null, apps });

test("two loads end with the newer answer, also if the older one arrives first", async () => {
  const { loadSession, session } = await import("../../web/account/session.ts");
  const [first, second] = [loadSession(), loadSession()];
  answers[0]?.resolve(answer(["shop", "deleted"]));
  const shown = first.then(() => session.get());
  answers[1]?.resolve(answer(["shop"]));
  expect(await shown).toMatchObject({ apps: ["shop"] });
  expect(await Promise.all([first, second])).toMatchObject([{ apps: ["shop"] }, { apps: ["shop"] }]);
});
