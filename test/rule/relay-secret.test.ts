import { describe, expect, test } from "bun:test";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { setProcessorSecret } from "../../src/platform/account/environment.ts";
import { processorSecretContext, receiverSecretContext, signingSecretContext } from "../../src/rules/relay/relay.ts";
import { updateAllRuleProblems } from "../../src/rules/relay/relay-problem.ts";
import { listRelays } from "../../src/rules/relay/relay-view.ts";
import { prepareSecret, readSecretSlot, rekeyFingerprints, rotateSigningSecret, storeSecret } from "../../src/rules/relay/secret-rotation.ts";
import { findSender } from "../../src/rules/senders/registry.ts";
import { startDefinition } from "../../src/rules/senders/sender-start.ts";
import { openFreshStore, refusalOf } from "../kit/fresh-store.ts";
import { CALL, ECDSA, ED25519, GRANT, HMAC, HOOKS, makeRelayKit, PROCESSOR, receiver, schedule, sealer, TOKEN } from "../kit/relay-kit.ts";

const fresh = await openFreshStore();
const { store, clock, environment } = fresh;
const kit = makeRelayKit(fresh);
const { id: environmentId } = await environment("development");

const pem = (key: KeyObject) => key.export({ type: "spki", format: "pem" }).toString();
const der = (key: KeyObject) => key.export({ type: "spki", format: "der" }).toString("base64");
const ed = generateKeyPairSync("ed25519");
const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
const PASTED = "prov1der-Secret-0123456789-abc";
const PASTED_HOOKS = "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=";
let serial = 0;
const newName = () => `relay-${++serial}`;

async function stored(name: string): Promise<{ kind: string; text: string | null; digest: unknown }> {
  const row = await store.read((tx) =>
    tx.get<{ id: string; kind: string; secret: Uint8Array | null; digest: unknown }>(
      "SELECT id, secret_kind AS kind, secret, secret_digest AS digest FROM relay WHERE name = ?1 AND environment_id = ?2",
      name,
      environmentId,
    ),
  );
  if (row === null) throw new Error("No relay.");
  const text = row.secret === null ? null : sealer.unseal(row.secret, receiverSecretContext(row.id));
  return { kind: row.kind, text, digest: row.digest };
}

describe("a new relay's receiver secret", () => {
  const rows: [string, object, string | null, string, string | null][] = [
    ["is minted for a signature recipe without one", HMAC, null, "minted", null],
    ["is minted for shared_token without one", TOKEN, null, "minted", null],
    ["is minted with whsec_ for hooks without one", HOOKS, null, "minted", null],
    ["is the pasted one for a signature recipe", HMAC, PASTED, "pasted", PASTED],
    ["is the pasted one for hooks", HOOKS, PASTED_HOOKS, "pasted", PASTED_HOOKS],
    ["is the pasted public key, in one form, for ed25519", ED25519, pem(ed.publicKey), "public_key", der(ed.publicKey)],
    ["is the pasted public key, in one form, for ecdsa", ECDSA, pem(ec.publicKey), "public_key", der(ec.publicKey)],
    ["is missing for a public-key recipe without one", ED25519, null, "none", null],
    ["is the environment's own for processor", PROCESSOR, null, "processor", null],
  ];
  test.each(rows)("%s", async (_rule, verify, value, kind, text) => {
    const name = newName();
    const saved = await kit.create(receiver(name, verify), { secret: value });
    const kept = await stored(name);
    expect([kept.kind, saved.relay.secret.kind as string]).toEqual([kind, kind]);
    expect(kept.text).toBe(kind === "minted" ? (saved.receiverSecret ?? "") : text);
    expect(saved.receiverSecret !== undefined).toBe(kind === "minted");
  });

  const refused: [string, object, string, string][] = [
    ["refuses a short secret", HMAC, "br13f", "too short"],
    ["refuses a repeated pattern", HMAC, "abcabcabcabcabcabcabcabcabc", "repeated"],
    ["refuses a hooks secret without whsec_", HOOKS, PASTED, "whsec_"],
    ["refuses a public key on an HMAC recipe", HMAC, pem(ed.publicKey), "key"],
    ["refuses a private key on a public-key recipe", ED25519, ed.privateKey.export({ type: "pkcs8", format: "pem" }).toString(), "private"],
    ["refuses a key of another kind", ED25519, pem(ec.publicKey), "Ed25519"],
    ["refuses a secret where a public key belongs", ECDSA, PASTED, "P-256"],
    ["refuses a secret on processor, which uses the environment's own", PROCESSOR, PASTED, "settings"],
  ];
  test.each(refused)("%s", async (_rule, verify, value, word) => {
    const name = newName();
    const refusal = await refusalOf(() => kit.create(receiver(name, verify), { secret: value }));
    expect([refusal.code, refusal.message]).toEqual(["invalid_input", expect.stringContaining(word)]);
    expect(refusal.message).not.toContain(value.slice(0, 20));
    expect((await refusalOf(() => kit.view(name))).code).toBe("not_found");
  });
});

describe("rotating a receiver secret", () => {
  test("without a value mints a new one, shown once, and with a value stores that one", async () => {
    const name = newName();
    const first = await kit.create(receiver(name, HMAC));
    await clock.advance(60_000);
    const minted = await kit.rotate(name, null);
    expect(minted.receiverSecret).toBeString();
    expect(minted.receiverSecret).not.toBe(first.receiverSecret ?? "");
    expect((await stored(name)).text).toBe(minted.receiverSecret ?? "");
    expect(await kit.rotate(name, PASTED)).toEqual({});
    expect(await stored(name)).toMatchObject({ kind: "pasted", text: PASTED });
    expect(await kit.view(name)).toMatchObject({
      version: 1,
      secret: { kind: "pasted", setAt: new Date(clock.now()).toISOString() },
    });
  });

  const refused: [string, object, string | null, string][] = [
    ["a public-key recipe's without a value", ED25519, null, "provider_secret_required"],
    ["a public-key recipe's with an invalid key", ED25519, "not a key at all", "invalid_input"],
    ["a processor relay's", PROCESSOR, PASTED, "invalid_input"],
    ["a processor relay's without a value", PROCESSOR, null, "invalid_input"],
  ];
  test.each(refused)("refuses %s", async (_rule, verify, value, code) => {
    const name = newName();
    await kit.create(receiver(name, verify));
    const before = await stored(name);
    expect((await refusalOf(() => kit.rotate(name, value))).code as string).toBe(code);
    expect(await stored(name)).toEqual(before);
  });

  test("is refused for a relay that is no receiver", async () => {
    const name = newName();
    await kit.create(schedule(name));
    expect((await refusalOf(() => kit.rotate(name, null))).code).toBe("invalid_input");
  });

  test("during a recipe change is refused with version_conflict and stores nothing", async () => {
    const name = newName();
    await kit.create(receiver(name, HMAC), { secret: PASTED });
    const here = await kit.context();
    const slot = await store.read((tx) => readSecretSlot(tx, environmentId, name));
    const paste = prepareSecret(slot, "an0ther-Secret-9876543210-xyz", sealer, clock.now());
    await kit.update(name, receiver(name, ED25519), 1);
    const refusal = await refusalOf(() => store.write("dashboard", (tx) => storeSecret(tx, here, paste)));
    expect([refusal.code, refusal.extra.details]).toEqual(["version_conflict", { version: 2 }]);
    expect(await stored(name)).toEqual({ kind: "none", text: null, digest: null });
  });

  test("for a relay that was deleted and created again is refused with version_conflict", async () => {
    const name = newName();
    await kit.create(receiver(name, HMAC));
    const here = await kit.context();
    const slot = await store.read((tx) => readSecretSlot(tx, environmentId, name));
    const paste = prepareSecret(slot, PASTED, sealer, clock.now());
    await store.write("dashboard", (tx) => tx.run("DELETE FROM relay WHERE name = ?1", name));
    await kit.create(receiver(name, HMAC));
    const refusal = await refusalOf(() => store.write("dashboard", (tx) => storeSecret(tx, here, paste)));
    expect([refusal.code, (await stored(name)).kind]).toEqual(["version_conflict", "minted"]);
  });

  test("deletes the signatures of the old secret a day later", async () => {
    const name = newName();
    await kit.create(receiver(name, HMAC));
    const remembered = "INSERT INTO signature_memory VALUES (?1, ?2, ?3, ?3, NULL, NULL, NULL)";
    await store.write("app", async (tx) => {
      for (const hash of [1, 2, 3]) await tx.run(remembered, environmentId, name, Uint8Array.of(hash));
    });
    await kit.rotate(name, null);
    const read = (sql: string) => store.read((tx) => tx.all(sql, name));
    // One entry covers its own signatures, and one those without a secret. However many signatures exist, the service rewrites none of them.
    const until = clock.now() + 86_400_000;
    expect(await read("SELECT length(secret) AS size, until FROM retired_secret WHERE relay_name = ?1 ORDER BY secret")).toEqual([
      { size: 0, until },
      { size: 8, until },
    ]);
    expect(await read("SELECT DISTINCT until FROM signature_memory WHERE relay_name = ?1")).toEqual([{ until: null }]);
  });
});

describe("one secret in two environments of an app", () => {
  test("is refused for the same relay name, on create and on rotate, and allowed for another name", async () => {
    const name = newName();
    await kit.create(receiver(name, HMAC), { secret: PASTED }, "production");
    const created = await refusalOf(() => kit.create(receiver(name, HMAC), { secret: ` ${PASTED}\n` }));
    expect([created.code, created.message]).toEqual(["invalid_input", expect.stringContaining("production")]);
    await kit.create(receiver(name, HMAC));
    expect((await refusalOf(() => kit.rotate(name, PASTED))).code).toBe("invalid_input");
    expect((await stored(name)).kind).toBe("minted");
    const other = newName();
    await kit.create(receiver(other, HMAC), { secret: PASTED });
    expect((await stored(other)).text).toBe(PASTED);
  });

  test("is refused for a public key too, in any format", async () => {
    const name = newName();
    await kit.create(receiver(name, ED25519), { secret: pem(ed.publicKey) }, "production");
    await kit.create(receiver(name, ED25519));
    expect((await refusalOf(() => kit.rotate(name, der(ed.publicKey)))).code).toBe("invalid_input");
  });

  test("is refused if the other one is the processor's own secret", async () => {
    const name = newName();
    const production = await environment("production");
    const secret = {
      sealed: sealer.seal(PASTED, processorSecretContext(production.id)),
      fingerprint: "sha256:f",
      digest: sealer.digest(PASTED),
    };
    await store.write("app", (tx) => setProcessorSecret(tx, production, secret, clock.now()));
    const saved = await kit.create(receiver(name, PROCESSOR), {}, "production");
    expect(saved.relay.secret).toMatchObject({ kind: "processor", fingerprint: "sha256:f" });
    expect((await refusalOf(() => kit.create(receiver(name, HMAC), { secret: PASTED }))).code).toBe("invalid_input");
    const other = newName();
    await kit.create(receiver(other, HMAC), { secret: PASTED });
    const reverse = await refusalOf(() => kit.create(receiver(other, PROCESSOR), {}, "production"));
    expect(reverse.code).toBe("invalid_input");
  });
});

describe("a save that changes the scheme", () => {
  const pasteFor = (verify: object): string | null =>
    verify === ED25519
      ? pem(ed.publicKey)
      : verify === ECDSA
        ? pem(ec.publicKey)
        : verify === HOOKS
          ? PASTED_HOOKS
          : verify === PROCESSOR
            ? null
            : PASTED;
  const HMAC_512 = { ...HMAC, algorithm: "hmac-sha512" };
  const rows: [string, object, object, "stays" | "minted" | "none" | "processor", string | null][] = [
    ["between HMAC algorithms keeps the secret", HMAC, HMAC_512, "stays", null],
    ["from a recipe to shared_token keeps the secret", HMAC, TOKEN, "stays", null],
    ["from hooks to a recipe keeps the secret", HOOKS, HMAC, "stays", null],
    ["from a recipe to hooks mints a secret that hooks can read", HMAC, HOOKS, "minted", "deleted"],
    ["from a secret to a public key clears the secret", HMAC, ED25519, "none", "deleted"],
    ["from a public key to a secret clears the key and mints a secret", ED25519, HMAC, "minted", "deleted"],
    ["from one kind of public key to another clears the key", ED25519, ECDSA, "none", "deleted"],
    ["from a secret to processor clears the secret", HMAC, PROCESSOR, "processor", "deleted"],
    ["from processor to a secret mints one", PROCESSOR, HMAC, "minted", null],
    ["within one scheme keeps the key", ED25519, { ...ED25519, encoding: "base64" }, "stays", null],
  ];
  test.each(rows)("%s", async (_rule, before, after, outcome, warning) => {
    const name = newName();
    await kit.create(receiver(name, before), { secret: pasteFor(before) });
    const was = await stored(name);
    const saved = await kit.update(name, receiver(name, after), 1);
    const is = await stored(name);
    if (outcome === "stays") expect(is).toEqual(was);
    else {
      expect(is.kind).toBe(outcome);
      expect(is.text).toBe(outcome === "minted" ? (saved.receiverSecret ?? "") : null);
    }
    expect(saved.receiverSecret !== undefined).toBe(outcome === "minted");
    const told = saved.warnings.filter(({ code }) => code === "secret_replaced");
    expect(told).toHaveLength(warning === null ? 0 : 1);
    if (outcome === "minted" && after === HOOKS) expect(saved.receiverSecret).toStartWith("whsec_");
  });

  test("from a receiver to another kind clears the secret and says so", async () => {
    const name = newName();
    await kit.create(receiver(name, HMAC), { secret: PASTED });
    const saved = await kit.update(name, schedule(name), 1);
    expect(await stored(name)).toEqual({ kind: "none", text: null, digest: null });
    expect(saved.warnings).toContainEqual(expect.objectContaining({ code: "secret_replaced", message: expect.stringContaining("deleted") }));
  });

  test("from the old scheme name to signature keeps the secret, even one that is now too short", async () => {
    const name = newName();
    await kit.create(receiver(name, HMAC), { secret: PASTED });
    const { id } = await kit.view(name);
    const old = JSON.stringify(receiver(name, { scheme: "hmac_sha256_header", header: "x-signature" }));
    await store.write("app", (tx) =>
      tx.run("UPDATE relay SET definition = ?2, secret = ?3 WHERE id = ?1", id, old, sealer.seal("old-short", receiverSecretContext(id))),
    );
    expect((await kit.view(name)).trigger).toBe("receiver");
    const saved = await kit.update(name, receiver(name, HMAC), 1);
    expect([(await stored(name)).text, saved.receiverSecret]).toEqual(["old-short", undefined]);
  });
});

describe("a sender that makes its secret itself", () => {
  const definitionOf = (sender: string, name: string): Record<string, unknown> => {
    const known = findSender(sender);
    if (known === null) throw new Error(`There is no sender ${sender}.`);
    return startDefinition(known, name);
  };
  const stripe = (name: string): Record<string, unknown> => definitionOf("stripe", name);

  test("gets no secret from the service, which would verify nothing", async () => {
    const name = newName();
    const created = await kit.create(stripe(name));
    expect(created.receiverSecret).toBeUndefined();
    expect((await stored(name)).kind).toBe("none");
    expect(created.warnings).toContainEqual(
      expect.objectContaining({ code: "secret_missing", message: expect.stringContaining("Find it at Stripe: ") }),
    );
    const saved = await kit.update(name, { ...stripe(name), actions: [CALL] }, 1);
    expect([saved.receiverSecret, (await stored(name)).kind]).toEqual([undefined, "none"]);
    expect((await refusalOf(() => kit.rotate(name, null))).code).toBe("provider_secret_required");
    await kit.rotate(name, PASTED_HOOKS);
    expect((await stored(name)).kind).toBe("pasted");
  });

  test("gets one in local development, where the service signs the examples itself", async () => {
    const name = newName();
    const created = await kit.create(stripe(name), {}, "local");
    expect(created.receiverSecret).toStartWith("rcv_");
  });

  test("that takes a short secret gets one of its length", async () => {
    const name = newName();
    const { receiverSecret = "" } = await kit.create(definitionOf("lemon-squeezy", name));
    expect(receiverSecret).toMatch(/^rcv_[\w-]{36}$/);
  });
});

describe("a signing secret", () => {
  test("is rotated manually, shown once and sealed for its relay", async () => {
    const name = newName();
    const created = await kit.create(schedule(name, [CALL]), { signingSecret: PASTED });
    expect(created.signingSecret).toBe(PASTED);
    const here = await kit.context();
    const rotated = await store.write("dashboard", (tx) => rotateSigningSecret(tx, here, name));
    const row = await store.read((tx) =>
      tx.get<{ id: string; sealed: Uint8Array }>("SELECT id, signing_secret AS sealed FROM relay WHERE name = ?1", name),
    );
    const text = row === null ? null : sealer.unseal(row.sealed, signingSecretContext(row.id));
    expect([text, rotated.signingSecret === PASTED]).toEqual([rotated.signingSecret, false]);
  });

  test("is refused for a relay with no call_url", async () => {
    const name = newName();
    await kit.create(receiver(name));
    const here = await kit.context();
    const refusal = await refusalOf(() => store.write("dashboard", (tx) => rotateSigningSecret(tx, here, name)));
    expect([refusal.code, refusal.status]).toEqual(["no_call_url", 400]);
  });
});

describe("an older row that breaks a current rule", () => {
  const standing = async (name: string) => (await kit.view(name)).problems.map((problem) => problem.code);
  const settle = () => store.write("app", (tx) => updateAllRuleProblems(tx, sealer, clock.now()));
  const rewrite = (id: string, column: string, value: string | Uint8Array) =>
    store.write("app", (tx) => tx.run(`UPDATE relay SET ${column} = ?2 WHERE id = ?1`, id, value));
  const raised = (name: string) => store.read((tx) => tx.all("SELECT code FROM problem WHERE target = ?1 AND cleared_at IS NULL", `relay:${name}`));

  test("raises relay_unsigned_event once, and a save that follows the rule clears it", async () => {
    const name = newName();
    const { relay } = await kit.create(receiver(name, TOKEN));
    const map = { event_id: "id", person_id: "p" };
    await rewrite(relay.id, "definition", JSON.stringify(receiver(name, TOKEN, [GRANT], { map })));
    expect(await standing(name)).toEqual(["relay_unsigned_event"]);
    await settle();
    await settle();
    expect(await raised(name)).toEqual([{ code: "relay_unsigned_event" }]);
    await kit.update(name, receiver(name, TOKEN, [GRANT], { map, trustUnsignedEvents: true }), 1);
    expect([await standing(name), await raised(name)]).toEqual([[], []]);
  });

  const keys: [string, string, string][] = [
    ["a key stored as such", "public_key", der(ed.publicKey)],
    ["a key stored as a secret", "pasted", pem(ed.publicKey)],
  ];
  test.each(keys)("raises relay_key_as_secret for %s under HMAC, and a pasted secret clears it", async (_rule, kind, text) => {
    const name = newName();
    const { relay } = await kit.create(receiver(name, HMAC));
    await rewrite(relay.id, "secret", sealer.seal(text, receiverSecretContext(relay.id)));
    await rewrite(relay.id, "secret_kind", kind);
    await settle();
    expect(await standing(name)).toEqual(["relay_key_as_secret"]);
    await kit.rotate(name, PASTED);
    expect([await standing(name), await raised(name)]).toEqual([[], []]);
  });
});

describe("planted secrets", () => {
  test("appear in no view, audit row, problem or column, only once in the response that made them", async () => {
    const name = newName();
    const planted = ["plantedReceiver-0123456789-Ax", "plantedSigning-0123456789-By", "plantedRotated-0123456789-Cz"];
    const [receiverSecret = "", signingSecret = "", rotated = ""] = planted;
    const created = await kit.create(receiver(name, HMAC, [CALL]), { secret: receiverSecret, signingSecret });
    const minted = await kit.rotate(name, null);
    await kit.rotate(name, rotated);
    const here = await kit.context();
    const signed = await store.write("dashboard", (tx) => rotateSigningSecret(tx, here, name));
    const saved = await kit.update(name, receiver(name, ED25519, [CALL]), 1);
    await kit.rotate(name, pem(ed.publicKey));
    const secrets = [...planted, created.receiverSecret, minted.receiverSecret, signed.signingSecret, der(ed.publicKey)].filter(
      (secret) => secret !== undefined,
    );
    const tables = ["relay", "audit", "problem", "alert", "environment"];
    const rows = await store.read(async (tx) => {
      const all: unknown[] = [];
      for (const table of tables) all.push(...(await tx.all<Record<string, unknown>>(`SELECT * FROM ${table}`)));
      return all;
    });
    const asText = (value: unknown): string =>
      JSON.stringify(value, (_key, part) =>
        part instanceof Uint8Array ? Buffer.from(part).toString("latin1") : typeof part === "bigint" ? String(part) : part,
      );
    const views = [
      await kit.view(name),
      await store.read((tx) => listRelays(tx, here, { limit: 50, after: null })),
      { ...created, signingSecret: null },
      saved,
    ];
    const everything = asText([rows, views]);
    for (const secret of secrets) expect(everything).not.toContain(secret);
    expect(asText(rows)).toContain("SHA256:");
  });
});

describe("a fingerprint that an earlier version stored as a plain hash", () => {
  test("is keyed at the next start, for relays and the processor's secret, and the rest is unchanged", async () => {
    const [name, broken, keyed] = [newName(), newName(), newName()];
    for (const one of [name, broken, keyed]) await kit.create(receiver(one, ED25519), { secret: pem(ed.publicKey) });
    await kit.create(receiver(newName(), HMAC), { secret: PASTED });
    const old = newName();
    await kit.create(receiver(old, HMAC), { secret: `${PASTED}z` });
    await store.write("app", async (tx) => {
      await tx.run("UPDATE relay SET secret_fingerprint = 'sha256:0123456789abcdef' WHERE name IN (?1, ?2)", old, broken);
      await tx.run("UPDATE relay SET secret = x'01' WHERE name = ?1", broken);
      const processor = sealer.seal(PASTED, processorSecretContext(environmentId));
      await tx.run("UPDATE environment SET processor_secret = ?2, processor_secret_fingerprint = 'sha256:f' WHERE id = ?1", environmentId, processor);
    });
    const read = () =>
      store.read((tx) =>
        tx.all<{ name: string; fingerprint: string | null }>("SELECT name, secret_fingerprint AS fingerprint FROM relay ORDER BY name, id"),
      );
    const before = new Map((await read()).map((row) => [row.name, row.fingerprint]));
    await store.write("app", (tx) => rekeyFingerprints(tx, sealer));
    const expected = new Map(before).set(old, sealer.fingerprint(`${PASTED}z`));
    expect(new Map((await read()).map((row) => [row.name, row.fingerprint]))).toEqual(expected);
    expect(before.get(broken)).toBe("sha256:0123456789abcdef");
    expect(before.get(keyed)).toStartWith("SHA256:");
    expect((await environment("development")).processorSecretFingerprint).toBe(sealer.fingerprint(PASTED));
  });
});
