-- Places other than mail that alerts of an environment go to, such as a Slack channel.
CREATE TABLE alert_channel (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  -- The codes of the alerts that go to it, as JSON; NULL: all.
  codes TEXT,
  -- The plain fields, and the fingerprints of the secret ones, as JSON by name.
  fields TEXT NOT NULL,
  fingerprints TEXT NOT NULL,
  -- The secret fields as JSON by name, sealed.
  secret BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  -- The time of the last request to the service, and what it answered; NULL: none.
  tried_at INTEGER,
  result TEXT,
  -- The time of the first of the last failures in succession; NULL: the last request succeeded.
  failing_at INTEGER,
  failures INTEGER NOT NULL DEFAULT 0,
  -- No request is sent before this time.
  retry_at INTEGER
) STRICT;
CREATE INDEX alert_channel_by_environment ON alert_channel (environment_id, id);

-- Alerts that the service of a channel accepted.
CREATE TABLE alert_delivery (
  alert_id TEXT NOT NULL REFERENCES alert (id) ON DELETE CASCADE,
  channel_id TEXT NOT NULL REFERENCES alert_channel (id) ON DELETE CASCADE,
  opened_at INTEGER NOT NULL,
  -- The time when the service accepted that the alert is resolved; NULL: not yet.
  resolved_at INTEGER,
  PRIMARY KEY (alert_id, channel_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX alert_delivery_by_channel ON alert_delivery (channel_id);
CREATE INDEX alert_delivery_open ON alert_delivery (channel_id) WHERE resolved_at IS NULL;
