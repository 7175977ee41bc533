-- The S3 endpoint that backups are copied to, at most one row. It has an effect only where the rows are in relay.db. Both secrets are sealed.
CREATE TABLE backup_target (
  one bigint PRIMARY KEY CHECK (one = 1),
  endpoint text COLLATE "C" NOT NULL,
  bucket text COLLATE "C" NOT NULL,
  region text COLLATE "C" NOT NULL,
  prefix text COLLATE "C" NOT NULL,
  access_key_id text COLLATE "C" NOT NULL,
  secret_access_key bytea NOT NULL,
  passphrase bytea NOT NULL,
  keep bigint NOT NULL,
  set_at bigint NOT NULL
);

-- The copy of each backup, by the name of its file. failure is NULL after a success.
CREATE TABLE backup_copy (
  name text COLLATE "C" NOT NULL PRIMARY KEY,
  copied_at bigint,
  bytes bigint,
  failed_at bigint,
  failure text COLLATE "C"
);
