-- Replays of many events by a filter, one walk each. It goes on where it stopped: `cursor` moves in the transaction that queues the events.
CREATE TABLE bulk_replay (
  id TEXT NOT NULL PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  state TEXT NOT NULL,
  chosen TEXT NOT NULL,
  per_second INTEGER NOT NULL,
  matched INTEGER NOT NULL,
  replayed INTEGER NOT NULL DEFAULT 0,
  left_out TEXT NOT NULL DEFAULT '{}',
  cursor INTEGER NOT NULL,
  until_seq INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  finished_at INTEGER
) STRICT;

CREATE INDEX bulk_replay_by_environment ON bulk_replay (environment_id, id);

CREATE UNIQUE INDEX bulk_replay_running ON bulk_replay (environment_id) WHERE state = 'running';

CREATE INDEX bulk_replay_finished ON bulk_replay (finished_at) WHERE finished_at IS NOT NULL;
