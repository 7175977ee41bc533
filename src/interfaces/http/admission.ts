/**
 * Decides where a caller may go. One function admits callers to `/api/apps/{appId}/{environment}`: it resolves the environment in the path and refuses
 * every caller without access. Routes get its result and never read a key, a session or another environment.
 */

import { Refusal } from "../../base/refusal.ts";
import {
  type Actor,
  actorOrigin,
  COMMAND_LINE,
  formatActor,
  type PresentedKey,
} from "../../platform/account/api-key.ts";
import {
  type Environment,
  type EnvironmentName,
  findEnvironmentById,
  needsSecondPerson,
  rejectUnknownEnvironment,
  requireEnvironment,
} from "../../platform/account/environment.ts";
import { listMemberships } from "../../platform/account/membership.ts";
import { findOwnerByEmail } from "../../platform/account/owner.ts";
import {
  COMMAND_LINE_PERMISSIONS,
  commonPermissions,
  EVERY,
  isMemberOf,
  KEY_PERMISSIONS,
  PERMISSIONS,
  type Permission,
  type Permissions,
  type Place,
  permissionsIn,
  SERVER_PLACE,
} from "../../platform/account/permission.ts";
import type { Origin, Reader } from "../../store/port.ts";
import { type Caller, callerOf, findCallerAgain, lacksFactor, readBearer } from "./caller.ts";
import { readSessionCookie } from "./cookie.ts";
import type { HttpDeps } from "./deps.ts";

/** Returns the actor of a change, for rows and audit. */
function actorOf(caller: Caller): Actor {
  switch (caller.kind) {
    case "key":
      return { kind: "key", id: caller.key.id, owner: caller.key.owner };
    case "owner":
      return { kind: "owner", id: caller.session.ownerId, email: caller.session.ownerEmail };
    case "command_line":
      return COMMAND_LINE;
  }
}

export interface Admitted {
  environment: Environment;
  actor: Actor;
  /** The actor in the format of rows and audit. */
  by: string;
  /** The writer, for the store. */
  origin: Origin;
  /** Reports whether the caller has a permission in addition to the one that the route needs. */
  may(permission: Permission): boolean;
  /** Reports whether the caller has a permission in another environment of the app. */
  mayIn(name: EnvironmentName, permission: Permission): boolean;
  /** Refuses a caller who does not have the permission in another environment of the app. */
  requireIn(name: EnvironmentName, permission: Permission): void;
}

/**
 * Admits the caller to the environment. Refuses with `forbidden` (an app key, or a caller without the permission), `wrong_environment` (a key of
 * another environment, whether or not the one in the path exists) or `not_found`.
 */
export async function admit(
  deps: HttpDeps,
  caller: Caller,
  {
    appId,
    name,
    needs,
    keepsDefinitions,
  }: { appId: string; name: string; needs: Permission; keepsDefinitions: boolean },
): Promise<Admitted> {
  if (caller.kind === "key") requireKeyOf(caller.key, appId, name);
  const environment = await deps.store.read((tx) => requireEnvironment(tx, appId, name));
  const admitted = admitAt(caller, { appId, name }, needs);
  if (needs === "edit_definitions" && !keepsDefinitions && needsSecondPerson(environment))
    throw new Refusal(
      "approval_needed",
      `Relays and the catalog of ${appId}/${name} change only with the approval of a second person: change development, then run relay promote.`,
    );
  return { environment, ...admitted };
}

/** Returns the caller as an actor. Refuses a caller who has no permission there as if the place did not exist. */
function admitAt(caller: Caller, place: Place, needs: Permission): Omit<Admitted, "environment"> {
  const permissions = permissionsOf(caller, place);
  if (caller.kind === "owner" && permissions.size === 0) throw rejectUnknownEnvironment();
  if (!permissions.has(needs)) throw rejectPermission(caller, place, needs);
  const actor = actorOf(caller);
  return {
    actor,
    by: formatActor(actor),
    origin: actorOrigin(actor),
    may: (permission) => permissions.has(permission),
    mayIn: (name, permission) => permissionsOf(caller, { ...place, name }).has(permission),
    requireIn(name, permission) {
      const other = { ...place, name };
      if (!permissionsOf(caller, other).has(permission)) throw rejectPermission(caller, other, permission);
    },
  };
}

/**
 * Returns the permissions of the caller in a place. A key of `relay login` has at most those of its person at this time. A key with scopes reaches
 * another environment of its app only with the scope `request_changes`, and only to read it and to request changes.
 */
function permissionsOf(caller: Caller, place: Place): Permissions {
  switch (caller.kind) {
    case "key": {
      const { scopes, memberships } = caller.key;
      if (isOutsideOf(caller.key, place.name)) return NO_PERMISSIONS;
      const all = scopes === null ? KEY_PERMISSIONS : new Set(scopes);
      const own =
        scopes !== null && place.name !== caller.key.environmentName
          ? commonPermissions(all, REQUESTER_PERMISSIONS)
          : all;
      return memberships === null ? own : commonPermissions(own, permissionsIn(memberships, place));
    }
    case "owner":
      return permissionsIn(caller.session.memberships, place);
    case "command_line":
      return COMMAND_LINE_PERMISSIONS;
  }
}

const NO_PERMISSIONS: Permissions = new Set();
const REQUESTER_PERMISSIONS: Permissions = new Set(["read", "request_changes"]);

/** Reports whether the key may not reach this environment of its app. */
function isOutsideOf({ environmentName, scopes }: PresentedKey, name: string): boolean {
  return name !== environmentName && scopes !== null && !scopes.includes("request_changes");
}

function rejectPermission(caller: Caller, { appId, name }: Place, needs: Permission): Refusal {
  const { may, keys } = PERMISSIONS[needs];
  const where = appId === EVERY ? "this server" : name === EVERY ? appId : `${appId}/${name}`;
  if (caller.kind === "key" && !keys)
    return new Refusal(
      "forbidden",
      `Only a member or the command line can ${may}, and a key cannot: sign in to the dashboard, or run the command on the server.`,
    );
  if (caller.kind === "key" && isOutsideOf(caller.key, name))
    return new Refusal(
      "forbidden",
      `This key may not ${may} in ${where}, because its scopes do not have request_changes: use a key that has it.`,
    );
  if (caller.kind === "key" && (caller.key.scopes?.includes(needs) ?? true))
    return new Refusal(
      "forbidden",
      `${caller.key.owner}, whose login made this key, has no role in ${where} that may ${may}: ask an owner of the server for the permission ${needs}.`,
    );
  return new Refusal(
    "forbidden",
    caller.kind === "key"
      ? `This key may not ${may}, because its scopes do not have ${needs}: use a key that has it.`
      : `Your role in ${where} may not ${may}: ask an owner of the server for a role with the permission ${needs}.`,
  );
}

/**
 * Returns the admitted caller of a long response, and a function that checks whether the caller would still be admitted. It records no use and
 * extends nothing.
 */
export function watchAdmission(
  deps: HttpDeps,
  request: Request,
  environmentId: number,
): { caller: string; holds(): Promise<boolean> } {
  const caller = callerOf(request);
  if (caller === null || caller.kind === "command_line")
    throw new Error("This request has no key and no session.");
  const isKey = caller.kind === "key";
  const token = (isKey ? readBearer(request) : readSessionCookie(deps, request)) ?? "";
  let begun: string | null = null;
  return {
    caller: isKey ? `key:${caller.key.id}` : `session:${caller.session.id}`,
    holds: () =>
      deps.store.read(async (tx) => {
        const now = await findCallerAgain(tx, { isKey, token, nowMs: deps.clock.now() });
        const environment = await findEnvironmentById(tx, environmentId);
        if (now === null || environment === null || (await lacksFactor(tx, deps, now))) return false;
        const held = [...permissionsOf(now, environment)].join(" ");
        begun ??= [...permissionsOf(caller, environment)].join(" ");
        return held === begun;
      }),
  };
}

/** Refuses an approval whose approver may not approve any more. */
export async function requireApprover(tx: Reader, decidedBy: string | null, place: Place): Promise<void> {
  const email = decidedBy?.replace(/^owner:/, "") ?? "";
  const person = await findOwnerByEmail(tx, email);
  const memberships = person === null ? [] : await listMemberships(tx, person.id);
  if (permissionsIn(memberships, place).has("approve")) return;
  throw new Refusal(
    "approval_void",
    `${email} approved this, but is no longer an owner of ${place.appId}/${place.name}: request an approval again.`,
  );
}

/** A person who is signed in to the dashboard. */
export interface Owner {
  id: string;
  email: string;
  sessionId: string;
  /** True if the session began with a second factor. */
  twoFactor: boolean;
  /** Reports whether the person is a member of the app. */
  sees(appId: string): boolean;
  /** Returns the person's permissions in a place. */
  permissionsIn(place: Place): Permissions;
}

/**
 * Returns the person of a session. Refuses a key, and a person without the permission: in the app that the path names, or on the server. Null: every
 * signed-in person has it.
 */
export function requireOwner(
  caller: Caller,
  needs: Permission | null,
  { appId }: Readonly<Record<string, string>>,
): Owner {
  if (caller.kind !== "owner") {
    throw new Refusal(
      "forbidden",
      "Only a signed-in owner can do this, and a key cannot: sign in to the dashboard.",
    );
  }
  const { session } = caller;
  const { memberships } = session;
  if (appId !== undefined && !isMemberOf(memberships, appId))
    throw new Refusal("not_found", `There is no app ${appId} on this server.`);
  if (needs !== null) {
    const place = appId === undefined ? SERVER_PLACE : { appId, name: EVERY };
    if (!permissionsOf(caller, place).has(needs)) throw rejectPermission(caller, place, needs);
  }
  return {
    id: session.ownerId,
    email: session.ownerEmail,
    sessionId: session.id,
    twoFactor: session.twoFactor,
    sees: (id) => isMemberOf(memberships, id),
    permissionsIn: (place) => permissionsIn(memberships, place),
  };
}

/**
 * Admits secret keys of any environment, and members of the place. Refuses an app key and a caller without the permission. `findPlace` returns the
 * place of what the path names; null if it does not exist.
 */
export async function admitTo(
  caller: Caller,
  needs: Permission,
  findPlace: () => Promise<Place | null>,
): Promise<Omit<Admitted, "environment">> {
  if (caller.kind === "key") requireSecretKey(caller.key);
  // A key that no person's login made has its scopes at its own place. The route shows it only what it requested itself.
  if (caller.kind === "key" && caller.key.memberships === null)
    return admitAt(caller, { appId: caller.key.appId, name: caller.key.environmentName }, needs);
  const place = await findPlace();
  if (place === null) throw rejectUnknownApproval();
  return admitAt(caller, place, needs);
}

/** Returns the refusal of an approval that does not exist, or that another caller requested. */
export function rejectUnknownApproval(): Refusal {
  return new Refusal(
    "not_found",
    "You requested no approval with this id: sign in as an owner, or use the key or the account that requested it.",
  );
}

function requireSecretKey({ kind }: { kind: string }): void {
  if (kind === "secret") return;
  throw new Refusal(
    "forbidden",
    "An app key works only on the client routes: use a secret key, from a server.",
  );
}

function requireKeyOf(
  key: { kind: string; appId: string; environmentName: string },
  appId: string,
  name: string,
): void {
  requireSecretKey(key);
  if (key.appId !== appId || key.environmentName !== name) {
    throw new Refusal(
      "wrong_environment",
      `This key belongs to ${key.appId}/${key.environmentName}: use a key of the environment that you name, or name the environment of the key.`,
    );
  }
}
