/**
 * The second factors of the signed-in person, the reset of another member's, and the rule that each member needs one. Adding and removing need a
 * recent authentication.
 */
import { Type } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { fields, textOrNull } from "../../base/schema.ts";
import { listAuthenticationMethods, provesFactor } from "../../platform/account/authentication.ts";
import { findOwnerById } from "../../platform/account/owner.ts";
import {
  addPasskey,
  findPasskeySite,
  listPasskeys,
  loadPasskeys,
  makeChallenge,
  readCredential,
  registrationOptions,
  verifyNewPasskey,
} from "../../platform/account/passkey.ts";
import { countRecoveryCodes, replaceRecoveryCodes } from "../../platform/account/recovery-code.ts";
import {
  factorView,
  hasFactor,
  isFactorRequired,
  listFactors,
  recordFirstFactor,
  removeFactor,
  requireFactorName,
  resetFactors,
  setFactorRequired,
} from "../../platform/account/second-factor.ts";
import { hasRecentFactor } from "../../platform/account/session.ts";
import { beginTotp, confirmTotp, loadTotp } from "../../platform/account/totp.ts";
import { type AuditEntry, SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import type { Owner } from "../http/admission.ts";
import type { HttpDeps } from "../http/deps.ts";
import { ownerRoute } from "../http/route.ts";
import { requireStill } from "./account.ts";
import { passkeyOptions, requirePasskeySite, sayRefused, totpField } from "./signin-factor.ts";

const codes = Type.Array(Type.String(), {
  description: "the ten recovery codes, which no other response contains",
});

const factorName = Type.String({ maxLength: 200, description: "the name of the device, such as Phone" });

const factorsView = Type.Object({
  factors: Type.Array(factorView),
  recoveryCodes: Type.Integer({ description: "the number of recovery codes that were not used" }),
  required: Type.Boolean({ description: "whether each member of the server needs a second factor" }),
  passkeyProblem: textOrNull,
});

const ruleView = Type.Object({
  required: Type.Boolean({ description: "whether each member needs a second factor" }),
  given: Type.Boolean({ description: "true if --second-factor decides, so that it cannot be changed here" }),
});

/** Writes an audit row about the signed-in person or, with `target`, about another member or the server. */
async function audit(
  tx: Writer,
  { owner, nowMs }: { owner: Owner; nowMs: number },
  entry: Pick<AuditEntry, "action" | "before" | "after"> & { target?: string },
): Promise<void> {
  const by = `owner:${owner.email}`;
  await writeAudit(tx, { environmentId: SERVER_SCOPE, nowMs, by, target: by, ...entry });
}

async function isRequired(tx: Reader, { config }: HttpDeps): Promise<boolean> {
  return config.secondFactor ?? (await isFactorRequired(tx));
}

function requirePasswords({ config }: HttpDeps): void {
  if (config.mode === "server") return;
  throw new Refusal(
    "forbidden",
    "Local development has no passwords, so it has no second factor: start a server with relay serve.",
  );
}

/** A new passkey with an RSA key and an id of 255 bytes has about 2,000 characters. */
const newPasskey = Type.String({
  maxLength: 2_500,
  description: "the credential that the browser returned, as JSON text",
});

/** Returns why the dashboard offers no passkeys; null if it offers them. */
function sayPasskeyProblem(deps: HttpDeps): string | null {
  const site = findPasskeySite(deps.baseUrl());
  return typeof site === "string" ? site : null;
}

/** Returns the purpose of the challenge of a new passkey. */
const newPasskeyOf = ({ sessionId }: Owner): string => `register ${sessionId}`;

/** Completes a new factor of the person in the transaction. Returns it with the recovery codes that the first factor makes. */
async function completeFactor(
  tx: Writer,
  { owner, nowMs }: { owner: Owner; nowMs: number },
  id: string,
  { sealer }: HttpDeps,
) {
  const isFirst = await recordFirstFactor(tx, { ownerId: owner.id, sessionId: owner.sessionId, nowMs });
  const factor = (await listFactors(tx, owner.id)).find((one) => one.id === id);
  if (factor === undefined) throw new Error("The new factor is not listed.");
  const { kind, name } = factor;
  await audit(tx, { owner, nowMs }, { action: "owner.factor_added", after: { kind, name } });
  return { factor, recoveryCodes: isFirst ? await replaceRecoveryCodes(tx, sealer, owner.id) : [] };
}

/**
 * Refuses with `reauthentication_required` a change of factors by a person who has one and proved only a password in the last 15 minutes. Otherwise
 * a thief of session and password would add a factor or get new recovery codes.
 */
async function requireRecentFactor(
  tx: Reader,
  { owner, nowMs }: { owner: Owner; nowMs: number },
): Promise<void> {
  if (!(await hasFactor(tx, owner.id)) || (await hasRecentFactor(tx, owner.sessionId, nowMs))) return;
  const methods = (await listAuthenticationMethods(tx, owner.id)).filter(provesFactor);
  throw new Refusal(
    "reauthentication_required",
    "You have a second factor, so a password is not enough to change factors: confirm with a factor or a recovery code at POST /api/session/confirm, then send the request again. If you have none, ask an owner to reset your second factor.",
    { details: { methods } },
  );
}

/** Returns the squares of a QR code: their number in a row, and the dark ones as the path of an SVG. */
async function drawQr(text: string): Promise<{ size: number; path: string }> {
  const { encode } = await import("uqr");
  const { size, data } = encode(text, { ecc: "M", border: 0 });
  const path = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  return { size, path: path.join("") };
}

export const secondFactorRoutes = [
  ownerRoute({
    method: "GET",
    path: "/api/session/factors",
    needs: null,
    enrolls: true,
    summary: "Lists the second factors of the signed-in member, with the number of unused recovery codes.",
    answer: factorsView,
    read: async (tx, { deps, owner }) => ({
      factors: await listFactors(tx, owner.id),
      recoveryCodes: await countRecoveryCodes(tx, owner.id),
      required: await isRequired(tx, deps),
      passkeyProblem: sayPasskeyProblem(deps),
    }),
  }),
  ownerRoute({
    method: "POST",
    path: "/api/session/factors/totp",
    needs: null,
    enrolls: true,
    sensitive: true,
    summary:
      "Creates the secret of an authenticator app. The app becomes a second factor when its first code is confirmed, within ten minutes.",
    body: fields({
      name: factorName,
    }),
    answer: Type.Object({
      id: Type.String(),
      secret: Type.String({ description: "the secret in base32, to type it by hand" }),
      uri: Type.String({ description: "the otpauth address that a QR code contains" }),
      qr: Type.Object({ size: Type.Integer(), path: Type.String() }),
    }),
    status: 201,
    async handle({ deps, owner, body, nowMs }) {
      requirePasswords(deps);
      const library = await loadTotp();
      const { sealer, store } = deps;
      const begun = await store.write("dashboard", async (tx) => {
        await requireRecentFactor(tx, { owner, nowMs });
        const name = await requireFactorName(tx, owner.id, body.name);
        return await beginTotp(tx, library, { owner, name, sealer, nowMs });
      });
      return { ...begun, qr: await drawQr(begun.uri) };
    },
  }),
  ownerRoute({
    method: "POST",
    path: "/api/session/factors/:id/confirm",
    needs: null,
    enrolls: true,
    sensitive: true,
    summary:
      "Confirms an authenticator app with its first code. For the first factor, the answer has ten recovery codes, and all other sessions end.",
    body: fields({ totp: totpField }),
    answer: Type.Object({ factor: factorView, recoveryCodes: codes }),
    async handle({ deps, owner, source, params, body, nowMs }) {
      const { sealer, store, signinCap } = deps;
      const place = { kind: "device", name: owner.sessionId } as const;
      await signinCap.countAttempt(source, owner.email, place);
      const library = await loadTotp();
      const code = body.totp.replace(/\s/g, "");
      const done = await store.write("dashboard", async (tx) => {
        await requireRecentFactor(tx, { owner, nowMs });
        const given = { ownerId: owner.id, id: params.id, code, sealer, nowMs };
        const result = await confirmTotp(tx, library, given);
        if (result !== "right") return null;
        return await completeFactor(tx, { owner, nowMs }, params.id, deps);
      });
      if (done === null) throw new Refusal("invalid_input", sayRefused("totp", "wrong"));
      signinCap.releaseAttempt(source, owner.email, place);
      return done;
    },
  }),
  ownerRoute({
    method: "POST",
    path: "/api/session/factors/passkey/options",
    needs: null,
    enrolls: true,
    sensitive: true,
    summary:
      "Returns the options for a new passkey of the signed-in member. They work once, for five minutes.",
    answer: passkeyOptions,
    async handle({ deps, owner, nowMs }) {
      requirePasswords(deps);
      const site = requirePasskeySite(deps);
      const passkeys = await deps.store.read(async (tx) => {
        await requireRecentFactor(tx, { owner, nowMs });
        return await listPasskeys(tx, owner.id);
      });
      const challenge = makeChallenge(deps.sealer, newPasskeyOf(owner), nowMs);
      const options = await registrationOptions(await loadPasskeys(), { site, owner, passkeys, challenge });
      return { options: JSON.stringify(options) };
    },
  }),
  ownerRoute({
    method: "POST",
    path: "/api/session/factors/passkey",
    needs: null,
    enrolls: true,
    sensitive: true,
    summary:
      "Adds a passkey, which must verify its user. For the first factor, the answer has ten recovery codes, and all other sessions end.",
    body: fields({ name: factorName, passkey: newPasskey }),
    answer: Type.Object({ factor: factorView, recoveryCodes: codes }),
    status: 201,
    async handle({ deps, owner, body, nowMs }) {
      requirePasswords(deps);
      const site = requirePasskeySite(deps);
      const check = { site, sealer: deps.sealer, purpose: newPasskeyOf(owner), nowMs };
      const given = readCredential("passkey", body.passkey);
      const made = await verifyNewPasskey(await loadPasskeys(), given, check);
      if (made === null)
        throw new Refusal(
          "invalid_input",
          "passkey is not a new passkey of this site that verifies its user, or took longer than five minutes: retry, or use another device.",
        );
      return await deps.store.write("dashboard", async (tx) => {
        await requireRecentFactor(tx, { owner, nowMs });
        const name = await requireFactorName(tx, owner.id, body.name);
        const id = await addPasskey(tx, { ownerId: owner.id, name, nowMs }, made);
        return await completeFactor(tx, { owner, nowMs }, id, deps);
      });
    },
  }),
  ownerRoute({
    method: "DELETE",
    path: "/api/session/factors/:id",
    needs: null,
    sensitive: true,
    summary:
      "Removes a second factor of the signed-in member, soon after they proved one. With the last one, the recovery codes go too.",
    answer: null,
    async write(tx, { deps, owner, params, nowMs }) {
      await requireRecentFactor(tx, { owner, nowMs });
      const removed = await removeFactor(tx, {
        ownerId: owner.id,
        id: params.id,
        isRequired: await isRequired(tx, deps),
      });
      const { kind, name } = removed;
      await audit(tx, { owner, nowMs }, { action: "owner.factor_removed", before: { kind, name } });
    },
  }),
  ownerRoute({
    method: "POST",
    path: "/api/session/recovery-codes",
    needs: null,
    sensitive: true,
    summary: "Replaces the recovery codes of the signed-in member. Only this response contains the new ones.",
    answer: Type.Object({ recoveryCodes: codes }),
    status: 201,
    async handle({ deps, owner, nowMs }) {
      return await deps.store.write("dashboard", async (tx) => {
        if (!(await hasFactor(tx, owner.id)))
          throw new Refusal(
            "not_found",
            "You have no second factor, so there is nothing to recover: add an authenticator app or a passkey first.",
          );
        await requireRecentFactor(tx, { owner, nowMs });
        await audit(tx, { owner, nowMs }, { action: "owner.recovery_codes_replaced" });
        return { recoveryCodes: await replaceRecoveryCodes(tx, deps.sealer, owner.id) };
      });
    },
  }),
  ownerRoute({
    method: "DELETE",
    path: "/api/owners/:id/factors",
    needs: "manage_server",
    summary:
      "Removes all second factors of another member, who lost them, and ends the member's sessions. The password stays.",
    answer: null,
    async write(tx, { owner, params, nowMs }) {
      await requireStill(tx, owner);
      const member = await findOwnerById(tx, params.id);
      if (member === null)
        throw new Refusal("not_found", "There is no member with this id: GET /api/owners lists the members.");
      if (member.id === owner.id)
        throw new Refusal(
          "in_use",
          "You cannot reset your own second factors: remove them under Settings › Sessions, or run relay members reset-factor on the server.",
        );
      const factors = await resetFactors(tx, member.id);
      const target = `owner:${member.email}`;
      await audit(tx, { owner, nowMs }, { action: "owner.factors_reset", target, before: { factors } });
    },
  }),
  ownerRoute({
    method: "GET",
    path: "/api/second-factor",
    needs: "manage_server",
    summary: "Returns whether each member of the server needs a second factor.",
    answer: ruleView,
    read: async (tx, { deps }) => ({
      required: await isRequired(tx, deps),
      given: deps.config.secondFactor !== null,
    }),
  }),
  ownerRoute({
    method: "PUT",
    path: "/api/second-factor",
    needs: "manage_server",
    summary:
      "Sets whether each member needs a second factor. An owner without one cannot turn the rule on. A server with --second-factor refuses the change.",
    body: fields({ required: Type.Boolean({ description: "whether each member needs a second factor" }) }),
    answer: ruleView,
    async handle({ deps, owner, body, nowMs }) {
      requirePasswords(deps);
      if (deps.config.secondFactor !== null)
        throw new Refusal(
          "in_use",
          "The server was started with --second-factor (RELAY_SECOND_FACTOR), which decides: start it without this option, then change the rule here.",
        );
      const { required } = body;
      await deps.store.write("dashboard", async (tx) => {
        await requireStill(tx, owner);
        if (required && !owner.twoFactor)
          throw new Refusal(
            "in_use",
            "You have no second factor, so this rule would lock you out: add an authenticator app or a passkey under Settings › Sessions first.",
          );
        const before = await setFactorRequired(tx, required);
        if (before === required) return;
        await audit(
          tx,
          { owner, nowMs },
          {
            action: "server.factor_rule_changed",
            target: "server",
            before: { required: before },
            after: { required },
          },
        );
      });
      return { required, given: false };
    },
  }),
];
