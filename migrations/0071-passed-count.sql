-- Verified requests that a relay did not take although another relay of the same receiver took them, by the minute, for the funnel.
CREATE TABLE passed_count (
  environment_id INTEGER NOT NULL,
  relay_name TEXT NOT NULL,
  outcome TEXT NOT NULL,
  at INTEGER NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (environment_id, relay_name, outcome, at)
) WITHOUT ROWID;
CREATE INDEX passed_count_by_time ON passed_count (at);
