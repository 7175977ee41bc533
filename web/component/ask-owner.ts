/** Says whom to ask, to a member whose role lacks the permission. The style sheet hides it from the others, as it hides buttons (permission.css). */
import type { Permission } from "../../src/platform/account/permission.ts";
import { html, type View } from "../base/html.ts";

interface Props {
  needs: Permission;
  /** Completes "Your role cannot …". */
  to?: string;
}

/** The sentence in a line or among buttons. */
export function AskOwner({ needs, to = "fix this" }: Props): View {
  return html`<span data-lacks=${needs}>Your role cannot ${to}. Ask an owner.</span>`;
}

/** The sentence as a paragraph. */
export function AskOwnerLine({ needs, to = "fix this" }: Props): View {
  return html`<p class="quiet" data-lacks=${needs}>Your role cannot ${to}. Ask an owner.</p>`;
}

const SETTING_CODES: ReadonlySet<string> = new Set([
  "environment_held",
  "relay_refusing",
  "never_verified",
  "secret_missing",
  "relay_key_as_secret",
  "sender_domain_required",
  "alerts_unmailed",
  "codes_unmailed",
  "alert_channel_failing",
]);

/** Returns the permission of the fix of an attention item or of a relay's health. `isOver`: its cause no longer exists. */
export function permissionToFix(code: string | null, isOver = false): Permission {
  if (code === "approval_waiting") return "approve";
  if (code === "backup_missing" || code === "backup_copy_failed" || code === "proxy_unnamed")
    return "manage_server";
  if (code === "sale_suspended") return "act_on_people";
  if (code !== null && SETTING_CODES.has(code)) return "edit_settings";
  return code === "relay_failed" && isOver ? "replay" : "edit_definitions";
}
