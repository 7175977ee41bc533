/**
 * Checks in every test on PostgreSQL that a write that names an environment changes only rows of that environment, and that a write of the service's
 * own rows changes no row of an environment. Such a write stores its number in a setting of its transaction. Triggers, which only test databases
 * have, refuse any other row.
 */
import { GroupCommit } from "../../src/store/group-commit/group-commit.ts";
import { type BatchWork, EVERYTHING, SERVICE_ROWS, type WriteScope } from "../../src/store/port.ts";

/** Tables without an environment that a write of the service's own rows may change, and those that only a write of everything may change. */
const SERVICE_TABLES = ["session", "limit_window", "node"];
const SHARED_TABLES = [
  ...["app", "owner", "membership", "group_membership", "signin_link", "owner_network", "totp", "passkey", "recovery_code", "factor_rule"],
  ...["pending_signin", "used_challenge", "oidc_provider", "oidc_identity", "oidc_session", "oidc_signin"],
  ...["backup_copy", "backup_schedule", "backup_target", "master_key_proof", "event_last"],
];

/** Statements that add the triggers to a database that has the schema. */
export const SCOPE_TRIGGERS = `
  CREATE FUNCTION test_scope() RETURNS text LANGUAGE sql STABLE AS $$ SELECT coalesce(current_setting('relay.test_scope', true), '') $$;
  CREATE FUNCTION test_scope_row() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE
    scope text := test_scope();
    held text := coalesce(to_jsonb(NEW) ->> TG_ARGV[0], '');
    former text := coalesce(to_jsonb(OLD) ->> TG_ARGV[0], '');
  BEGIN
    IF (TG_OP <> 'DELETE' AND held <> scope) OR (TG_OP <> 'INSERT' AND former <> scope) THEN
      RAISE EXCEPTION 'A write of environment % changes a row of environment % in %.', scope, concat(former, ' ', held), TG_TABLE_NAME;
    END IF;
    RETURN NULL;
  END $$;
  CREATE FUNCTION test_scope_lease() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE
    -- A renewal and a return are writes of the service's own rows. Only a write of the environment, or of everything, gives a lease to a node.
    gives boolean := TG_OP <> 'DELETE' AND NEW.node IS NOT NULL AND (TG_OP = 'INSERT' OR NEW.epoch <> OLD.epoch OR NEW.node IS DISTINCT FROM OLD.node);
  BEGIN
    IF (CASE test_scope() WHEN '${SERVICE_ROWS}' THEN gives ELSE TG_OP <> 'UPDATE' OR NEW.environment_id::text <> test_scope() END) THEN
      RAISE EXCEPTION 'A write of environment % changes who holds a lease.', test_scope();
    END IF;
    RETURN NULL;
  END $$;
  CREATE FUNCTION test_scope_table() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'A write of environment % changes %.', test_scope(), TG_TABLE_NAME;
  END $$;
  DO $$ DECLARE held record; BEGIN
    FOR held IN SELECT table_name AS name, column_name AS number FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
      WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name <> 'node_lease' AND column_name = CASE table_name WHEN 'environment' THEN 'id' ELSE 'environment_id' END
    LOOP
      EXECUTE format('CREATE TRIGGER test_scope AFTER INSERT OR UPDATE OR DELETE ON %I FOR EACH ROW WHEN (test_scope() <> '''') EXECUTE FUNCTION test_scope_row(%L)',
        held.name, held.number);
    END LOOP;
    FOR held IN
      SELECT unnest(ARRAY['${SHARED_TABLES.join("', '")}']) AS name, '' AS allowed
      UNION ALL SELECT unnest(ARRAY['${SERVICE_TABLES.join("', '")}']), '${SERVICE_ROWS}'
    LOOP
      EXECUTE format('CREATE TRIGGER test_scope AFTER INSERT OR UPDATE OR DELETE ON %I FOR EACH ROW WHEN (test_scope() NOT IN ('''', %L)) EXECUTE FUNCTION test_scope_table()',
        held.name, held.allowed);
    END LOOP;
    CREATE TRIGGER test_scope AFTER INSERT OR UPDATE OR DELETE ON node_lease FOR EACH ROW WHEN (test_scope() <> '') EXECUTE FUNCTION test_scope_lease();
  END $$;`;

const SET = "SELECT set_config('relay.test_scope', ?1, true) AS scope";

type AnyWork = BatchWork<unknown, unknown>;
/** The guarded works of each work, by scope. A work keeps its identity, because drafts of the same work are one call. */
const guarded = new WeakMap<AnyWork, Map<WriteScope, AnyWork>>();

function guard(work: AnyWork, scope: WriteScope): AnyWork {
  const known = guarded.get(work) ?? new Map<WriteScope, AnyWork>();
  guarded.set(work, known);
  const found = known.get(scope);
  if (found !== undefined) return found;
  const made: AnyWork = async (tx, drafts) => {
    // An embedded database answers at once and has no such setting.
    if (tx.prefetch === undefined) return await work(tx, drafts);
    // Sent with the work's own statements, so that it costs no round trip.
    tx.get(SET, String(scope)).catch(() => undefined);
    const results = await work(tx, drafts);
    tx.get(SET, "").catch(() => undefined);
    return results;
  };
  known.set(scope, made);
  return made;
}

const { addDraft } = GroupCommit.prototype;
GroupCommit.prototype.addDraft = function <Draft, Result>(
  this: GroupCommit,
  ...[origin, work, draft, guards]: Parameters<typeof addDraft<Draft, Result>>
): Promise<Result> {
  const { scope = EVERYTHING } = guards ?? {};
  const checked = scope === EVERYTHING ? work : (guard(work as AnyWork, scope) as typeof work);
  return addDraft.call(this, origin, checked as AnyWork, draft, guards as never) as Promise<Result>;
};
