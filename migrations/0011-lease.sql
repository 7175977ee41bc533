-- Who runs what happens by itself, what a start asks of the events, and which master key this database belongs to.

-- What a start looks for: attempts that a dead process left. A few rows, however many events there are.
CREATE INDEX event_running ON event (seq) WHERE state = 'running';

CREATE TABLE runner_lease (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  -- Each server that runs here has the next one; whoever holds a lower one runs nothing any more.
  epoch INTEGER NOT NULL,
  -- Who has it, in words for people; NULL once it was given back.
  holder TEXT,
  -- What tells whether the holder can still be there: its machine and process, its lock file, and the database file it has open.
  host TEXT,
  pid INTEGER,
  lock_file TEXT,
  database_file TEXT,
  -- Another server asks whether the holder is there; it answers with the same number.
  asked INTEGER NOT NULL DEFAULT 0,
  answered INTEGER NOT NULL DEFAULT 0,
  -- Counts the looks at whether a write reaches the disk, so that each one changes a page.
  probes INTEGER NOT NULL DEFAULT 0
);

INSERT INTO runner_lease (one, epoch) VALUES (1, 0);

-- A text sealed under the master key when this database had its first; none in a database from before this table, until its next start.
CREATE TABLE master_key_proof (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  sealed BLOB NOT NULL
);

-- What the caretakers look for, so that a round walks through none of these tables.
CREATE INDEX session_by_end ON session (expires_at);
CREATE INDEX signin_link_by_end ON signin_link (expires_at);
CREATE INDEX alert_by_end ON alert (last_at);
CREATE INDEX problem_cleared ON problem (cleared_at) WHERE cleared_at IS NOT NULL;
