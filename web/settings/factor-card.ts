/** Second factors of the signed-in member: a list, adding and removing one, and new recovery codes. */
import { useState } from "preact/hooks";
import type { FactorView } from "../../src/platform/account/second-factor.ts";
import { canUsePasskeys } from "../account/passkey.ts";
import { PasskeySetup } from "../account/passkey-setup.ts";
import { RecoveryCodes, TotpSetup } from "../account/totp-setup.ts";
import { html, type View } from "../base/html.ts";
import { useLoad } from "../base/use-load.ts";
import { Dialog } from "../component/dialog.ts";
import { LoadingState, Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { Ago } from "../component/time.ts";
import { useSend } from "../component/use-send.ts";
import { SettingCard } from "./setting-card.ts";

const PATH = "/api/session/factors";

interface Factors {
  factors: FactorView[];
  recoveryCodes: number;
  required: boolean;
  /** The reason why the server offers no passkeys; null if it does. */
  passkeyProblem: string | null;
}

const KINDS: Readonly<Record<FactorView["kind"], string>> = {
  passkey: "Passkey",
  totp: "Authenticator app",
};

export function FactorCard({ hasPassword }: { hasPassword: boolean }): View {
  const { data, error, reload } = useLoad<Factors>(PATH, 60_000);
  const [adding, setAdding] = useState<FactorView["kind"] | null>(null);
  const [removing, setRemoving] = useState<FactorView | null>(null);
  const [codes, setCodes] = useState<readonly string[] | null>(null);
  const { send, isSending, error: refused } = useSend();
  if (data === undefined) return html`<${LoadingState} error=${error} rows=${2} onRetry=${reload} />`;
  const { factors, recoveryCodes, required, passkeyProblem } = data;
  const close = (): void => setAdding(null);
  const noPasskeys =
    passkeyProblem ?? (canUsePasskeys() ? null : "This browser has no passkeys at this address.");
  const replace = async (): Promise<void> => {
    const wanted = { method: "POST", path: "/api/session/recovery-codes", changes: [PATH] } as const;
    const sent = await send<{ recoveryCodes: string[] }>(wanted);
    if (sent !== null) setCodes(sent.answer.recoveryCodes);
  };
  return html`<${SettingCard} title="Second factor" error=${refused}>
    <p>${
      factors.length > 0
        ? "A sign-in needs your password and one of these factors. A passkey is also a sign-in by itself."
        : hasPassword
          ? "Only your password protects your account. With a passkey or an authenticator app, a password by itself opens nothing."
          : "You sign in without a password, so no second factor is asked for here."
    }${required && " This server requires a second factor."}</p>
    ${
      factors.length > 0 &&
      html`<ul class="factors">${factors.map(
        (
          one,
        ) => html`<li key=${one.id}><span class="factor"><b><${SafeText} text=${one.name} limit=${60} /></b>
          <small class="quiet">${KINDS[one.kind]}, added <${Ago} at=${one.createdAt} />, ${one.usedAt === null ? "not used yet" : html`last used <${Ago} at=${one.usedAt} />`}</small></span>
          <button type="button" class="quiet-danger" aria-label="Remove… ${one.name}" onClick=${() => setRemoving(one)}>Remove…</button></li>`,
      )}</ul>
      <p class=${recoveryCodes < 3 ? "" : "quiet"}>${recoveryCodes === 1 ? "1 recovery code is" : `${recoveryCodes} recovery codes are`} left. Each one replaces a lost device once.</p>`
    }
    <div class="tab-actions"><button type="button" class=${factors.length === 0 ? "primary" : ""} onClick=${() => setAdding("totp")}>Add an authenticator app</button>
      <button type="button" disabled=${noPasskeys !== null} onClick=${() => setAdding("passkey")}>Add a passkey</button>
      ${factors.length > 0 && html`<button type="button" disabled=${isSending} onClick=${() => void replace()}>${isSending ? "One moment…" : "New recovery codes"}</button>`}</div>
    ${adding === "totp" && html`<${Dialog} title="Add an authenticator app" onClose=${close} mustAnswer><${TotpSetup} onDone=${close} onCancel=${close} /><//>`}
    ${noPasskeys !== null && html`<p class="quiet">No passkey can be added. <${Sentence} text=${noPasskeys} /></p>`}
    ${adding === "passkey" && html`<${Dialog} title="Add a passkey" onClose=${close} mustAnswer><${PasskeySetup} onDone=${close} onCancel=${close} /><//>`}
    ${codes !== null && html`<${Dialog} title="New recovery codes" onClose=${() => setCodes(null)} mustAnswer><p>The earlier codes do not work any more.</p><${RecoveryCodes} codes=${codes} button="I stored the codes" onClose=${() => setCodes(null)} /><//>`}
    ${removing !== null && html`<${Remove} factor=${removing} isLast=${factors.length === 1} onClose=${() => setRemoving(null)} />`}
  <//>`;
}

function Remove({
  factor,
  isLast,
  onClose,
}: {
  factor: FactorView;
  isLast: boolean;
  onClose: () => void;
}): View {
  const { send, isSending, error } = useSend();
  const remove = async (): Promise<void> => {
    const path = `${PATH}/${factor.id}`;
    const done = `${factor.name} is removed.`;
    if ((await send({ method: "DELETE", path, changes: [PATH, "/api/owners"], done })) !== null) onClose();
  };
  return html`<${Dialog} title="Remove ${factor.name}?" onClose=${onClose}>
    <p>${isLast ? "This is your last factor: only your password protects your account afterwards, and your recovery codes end." : "A sign-in does not accept this factor any more."}</p>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class="danger" disabled=${isSending} onClick=${() => void remove()}>${isSending ? "Removing…" : "Remove the factor"}</button></div>
  <//>`;
}
