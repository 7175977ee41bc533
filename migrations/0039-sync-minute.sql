-- The last minute of syncs that changed anything in an environment, so that the cap on them holds for every node and past a restart.
CREATE TABLE sync_minute (
  environment_id INTEGER NOT NULL PRIMARY KEY REFERENCES environment (id),
  began_at INTEGER NOT NULL,
  changes INTEGER NOT NULL
) STRICT;
