-- Migrations 47 to 49 were edited after their release, so that a database lacks what its release's text did not bring. Each statement of this file
-- leaves a database that lacks nothing as it is. The service runs ADD COLUMN IF NOT EXISTS, which SQLite does not know, where the column is missing.
ALTER TABLE schema_migration ADD COLUMN IF NOT EXISTS hash TEXT;
-- Of 48 in 0.16.0. That release cleared promoted_from with every other save, so the version at present is the one that the promote made.
ALTER TABLE relay ADD COLUMN IF NOT EXISTS promoted_version INTEGER;
UPDATE relay SET promoted_version = version WHERE promoted_from IS NOT NULL AND promoted_version IS NULL;
-- Of 49 in 0.17.0. The event whose payment for the plan arrived last. NULL: a card payment, a payment before this migration, or none.
ALTER TABLE subscription ADD COLUMN IF NOT EXISTS paid_event_id TEXT;
-- Of 47 in 0.13.0. Where the present secret is older than the longest overlap and a day (8 days), a signature without a secret is taken as that secret's.
UPDATE signature_memory SET secret = substr(relay.secret_digest, 1, 8) FROM relay
  WHERE relay.environment_id = signature_memory.environment_id AND relay.name = signature_memory.relay_name AND relay.secret_digest IS NOT NULL
  AND relay.secret_set_at + 691200000 <= unixepoch() * 1000 AND signature_memory.until IS NULL AND signature_memory.secret IS NULL;
