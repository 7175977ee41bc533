-- The secret a signature that counts once lives as long as, by the first bytes of its digest; NULL: it has an end of its own, or was remembered before and may be another's.
ALTER TABLE signature_memory ADD COLUMN secret BLOB;
-- A secret that verifies no more: its signatures may be forgotten from `until` on. An empty one stands for those that name none.
CREATE TABLE gone_secret (
  environment_id INTEGER NOT NULL,
  relay_name TEXT NOT NULL,
  secret BLOB NOT NULL,
  until INTEGER NOT NULL,
  -- The hash up to which the name's signatures were looked at.
  swept BLOB NOT NULL,
  PRIMARY KEY (environment_id, relay_name, secret)
) WITHOUT ROWID;
CREATE INDEX gone_secret_by_until ON gone_secret (until);
-- What was to be forgotten for a secret that went is kept on: that secret may come back. Of a relay that is gone it goes when it was to go.
INSERT INTO gone_secret (environment_id, relay_name, secret, until, swept)
  SELECT environment_id, relay_name, x'', max(until), x'' FROM signature_memory
  WHERE until IS NOT NULL AND NOT EXISTS (SELECT 1 FROM relay
    WHERE relay.environment_id = signature_memory.environment_id AND relay.name = signature_memory.relay_name)
  GROUP BY environment_id, relay_name;
-- Where the present secret is older than the longest overlap and a day (8 days), every other one has been gone for a day: what lives as long as its
-- secret is taken as the present one's, and an end past that time is the row's own and stays.
UPDATE signature_memory SET until = NULL WHERE until IS NOT NULL AND NOT EXISTS (SELECT 1 FROM relay
  WHERE relay.environment_id = signature_memory.environment_id AND relay.name = signature_memory.relay_name AND relay.secret_digest IS NOT NULL
  AND relay.secret_set_at + 691200000 <= unixepoch() * 1000 AND relay.secret_set_at + 691200000 < signature_memory.until);
UPDATE signature_memory SET secret = substr(relay.secret_digest, 1, 8) FROM relay
  WHERE relay.environment_id = signature_memory.environment_id AND relay.name = signature_memory.relay_name AND relay.secret_digest IS NOT NULL
  AND relay.secret_set_at + 691200000 <= unixepoch() * 1000 AND signature_memory.until IS NULL;
