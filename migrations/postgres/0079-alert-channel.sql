CREATE TABLE alert_channel (
  id text COLLATE "C" PRIMARY KEY,
  environment_id bigint NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  kind text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  codes text COLLATE "C",
  fields text COLLATE "C" NOT NULL,
  fingerprints text COLLATE "C" NOT NULL,
  secret bytea NOT NULL,
  created_at bigint NOT NULL,
  tried_at bigint,
  result text COLLATE "C",
  failing_at bigint,
  failures bigint NOT NULL DEFAULT 0,
  retry_at bigint
);
CREATE INDEX alert_channel_by_environment ON alert_channel (environment_id, id);

CREATE TABLE alert_delivery (
  alert_id text COLLATE "C" NOT NULL REFERENCES alert (id) ON DELETE CASCADE,
  channel_id text COLLATE "C" NOT NULL REFERENCES alert_channel (id) ON DELETE CASCADE,
  opened_at bigint NOT NULL,
  resolved_at bigint,
  PRIMARY KEY (alert_id, channel_id)
);
CREATE INDEX alert_delivery_by_channel ON alert_delivery (channel_id);
CREATE INDEX alert_delivery_open ON alert_delivery (channel_id) WHERE resolved_at IS NULL;
