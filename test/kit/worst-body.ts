/** The most expensive bodies that a request can carry: those that are refused, and the largest that are accepted. */

export const MB = 1024 * 1024;
/** Secret of the receiver that `import-missed` and test events use. */
export const TOKEN = "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";

/** Returns bodies of at most this many bytes that are expensive to read. */
export const hostile = (most: number) => ({
  integers: `{"items":[${"1,".repeat(most / 2 - 40)}12345678901234567]}`,
  names: `{${Array.from({ length: Math.floor(most / 14) }, (_, at) => `"name${at}":1`).join(",")}}`,
  lists: `{"items":[${"[],".repeat(most / 3 - 40)}1]}`,
});

export const definition = (actions: unknown[]) => ({
  name: "big",
  trigger: {
    kind: "receiver",
    verify: { scheme: "signature", header: "x-signature", signedPayload: "{body}", encoding: "hex" },
    map: Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`name${at}`, "a.b.c"])),
  },
  actions,
});
const inJson = (text: string) =>
  definition(
    Array.from({ length: 10 }, () => ({
      type: "write_record",
      collection: "notes",
      data: { json: Object.fromEntries(Array.from({ length: 190 }, (_, at) => [`field${at}`, text])) },
    })),
  );
export const manyTemplates = inJson(`{{event.a.b}} ${"x".repeat(80)}`);
export const manyProblems = inJson("{{evnt.a.b | upper}}");
export const nearNames = definition([Object.fromEntries(Array.from({ length: 2_400 }, (_, at) => [`collectio${at}`, 1]))]);

const named = (name: string, value: object) => ({ ...value, name });
const NOTES_FIELDS = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`field${at}`, { type: "text" }]));
/** The most that one sync carries: the largest relay, twenty relays, and a catalog that makes the service check every relay. */
export const SYNCED: { relays: object[]; catalog?: object; prune?: true; base?: object[] }[] = [
  { relays: [named("large", manyTemplates)] },
  {
    relays: Array.from({ length: 20 }, (_, at) => named(`small${at}`, definition([{ type: "call_url", url: "https://example.com/x" }]))),
    prune: true,
  },
  {
    relays: Array.from({ length: 10 }, (_, at) => named(`some${at}`, definition([{ type: "grant_access", entitlement: `access:s${at}` }]))),
    catalog: {
      collections: Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`made${at}`, { kind: "shared", fields: NOTES_FIELDS }])),
      products: Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`made-${at}`, { title: "x".repeat(190) }])),
    },
    base: Array.from({ length: 2_000 }, (_, at) => ({ kind: "relay", name: `some${at}`, mark: "0".repeat(40), changed: false })),
  },
];

/** Returns lines of an export. Their ids differ for each try, so each line is stored. */
export const missed = (turn: number): (string | Uint8Array<ArrayBuffer>)[] => {
  const wide = Array.from({ length: 3 }, (_, at) => `{"id":"wide${turn}${at}","items":[${"[],".repeat(85_000)}1]}`);
  const mapped = Array.from({ length: 3 }, (_, at) => JSON.stringify({ id: `mapped${turn}${at}`, large: 'é"'.repeat(80_000) }));
  const delivery = (body: string) =>
    JSON.stringify({ headers: { "x-signature": new Bun.CryptoHasher("sha256", TOKEN).update(body).digest("hex") }, body });
  return [
    Array.from({ length: 999 }, (_, at) => `{"id":"small${turn}${at}","a":{"b":{"c":${at}}}}`).join("\n"),
    wide.join("\n"),
    mapped.join("\n"),
    delivery(JSON.stringify({ id: `signed${turn}`, large: '"'.repeat(120_000) })),
    [0, 1].map((at) => delivery(`{"no":${turn}${at},"items":[${"[],".repeat(85_000)}1]}`)).join("\n"),
    `${" ".repeat(MB - 10)}\nx`,
    `{"headers":{},"body":"${"x".repeat(500_000)}"}\n${"[".repeat(500_000)}`,
    Array.from({ length: 999 }, () => "[".repeat(1_000)).join("\n"),
  ];
};
