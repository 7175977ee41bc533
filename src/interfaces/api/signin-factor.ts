/** The second step of a sign-in: a code of an authenticator app, or a recovery code. */
import { Type } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { fields } from "../../base/schema.ts";
import {
  countRefusedCode,
  requirePendingSignin,
  usePendingSignin,
} from "../../platform/account/pending-signin.ts";
import { useRecoveryCode } from "../../platform/account/recovery-code.ts";
import type { FactorMethod } from "../../platform/account/second-factor.ts";
import { type CodeResult, loadTotp, useTotp } from "../../platform/account/totp.ts";
import { SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
import type { Writer } from "../../store/port.ts";
import { requireSameOrigin } from "../http/cookie.ts";
import type { HttpDeps } from "../http/deps.ts";
import { openRoute } from "../http/route.ts";
import { answerSession, findKnownPlace, signinAnswer, startSession } from "./signin-session.ts";

const MAX_CODE_CHARS = 40;

export const totpField = Type.String({
  maxLength: MAX_CODE_CHARS,
  description: "the six digits that the authenticator app shows",
});
const pendingToken = Type.String({
  maxLength: 100,
  description: "the token of a sign-in that waits for a second factor",
});

/** Checks the code of a method in the transaction and uses it up. */
type UseCode = (
  tx: Writer,
  given: { ownerId: string; code: string; sealer: HttpDeps["sealer"]; nowMs: number },
) => Promise<CodeResult>;

const METHODS: Readonly<Record<FactorMethod, { words: string; load(): Promise<UseCode> }>> = {
  totp: {
    words: "authenticator app",
    async load() {
      const library = await loadTotp();
      return (tx, given) => useTotp(tx, library, { ...given, code: given.code.replace(/\s/g, "") });
    },
  },
  recoveryCode: { words: "recovery code", load: async () => useRecoveryCode },
};

/** Audits a code of a second factor that was refused. */
async function auditRefusedCode(
  tx: Writer,
  { email, nowMs, method, why }: { email: string; nowMs: number; method: FactorMethod; why: CodeResult },
): Promise<void> {
  await writeAudit(tx, {
    environmentId: SERVER_SCOPE,
    nowMs,
    by: `owner:${email}`,
    action: "owner.factor_refused",
    target: `owner:${email}`,
    after: { method, why },
  });
}

/** Returns the refusal of a code. */
export function refuseCode(method: FactorMethod, why: CodeResult): Refusal {
  const field = method;
  if (why === "used")
    return new Refusal(
      "unauthenticated",
      method === "totp"
        ? `${field} was used already, and a code works once: wait until the app shows the next code.`
        : `${field} was used already, and a recovery code works once: type another one.`,
    );
  return new Refusal(
    "unauthenticated",
    method === "totp"
      ? `${field} is not the code of your app now: type the six digits that it shows, and check the clock of its device.`
      : `${field} is not one of your recovery codes: type another one, or ask an owner to reset your second factor.`,
  );
}

export const signinFactorRoutes = [
  openRoute({
    method: "POST",
    path: "/api/session/factor",
    summary:
      "Completes a sign-in that waits for a second factor. The body has the token and one method: totp or recoveryCode. Each code works once.",
    body: fields({
      token: pendingToken,
      totp: Type.Optional(totpField),
      recoveryCode: Type.Optional(
        Type.String({ maxLength: MAX_CODE_CHARS, description: "one of the ten recovery codes" }),
      ),
    }),
    answer: signinAnswer,
    async handle({ deps, request, source, body, headers, nowMs }) {
      requireSameOrigin(deps.config, request.headers);
      const { store, sealer, signinCap } = deps;
      const call = { deps, request, source, nowMs };
      const { email } = await store.read((tx) => requirePendingSignin(tx, body.token, nowMs));
      const given = (Object.keys(METHODS) as FactorMethod[]).filter((name) => body[name] !== undefined);
      const [method] = given;
      if (method === undefined || given.length > 1)
        throw new Refusal("invalid_input", "The body must have exactly one method: totp or recoveryCode.");
      const place = await findKnownPlace(call, email);
      await signinCap.countAttempt(source, email, place);
      const useCode = await METHODS[method].load();
      const done = await store.write("dashboard", async (tx) => {
        // Another request may have used the sign-in meanwhile.
        const pending = await requirePendingSignin(tx, body.token, nowMs);
        const { ownerId, how } = pending;
        const result = await useCode(tx, { ownerId, code: body[method] ?? "", sealer, nowMs });
        if (result !== "right") {
          await countRefusedCode(tx, pending);
          await auditRefusedCode(tx, { email, nowMs, method, why: result });
          return { refused: result };
        }
        await usePendingSignin(tx, pending);
        if (method === "recoveryCode")
          await writeAudit(tx, {
            environmentId: SERVER_SCOPE,
            nowMs,
            by: `owner:${email}`,
            action: "owner.recovery_code_used",
            target: `owner:${email}`,
          });
        const proof = { how: `${how} and ${METHODS[method].words}`, twoFactor: true };
        return await startSession(tx, { id: ownerId, email }, proof, call);
      });
      if ("refused" in done) {
        deps.log.warn("A second factor was refused.", { source });
        throw refuseCode(method, done.refused);
      }
      signinCap.releaseAttempt(source, email, place);
      return answerSession(deps, headers, done);
    },
  }),
];
