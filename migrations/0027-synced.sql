-- What the last sync brought of each relay and item of the catalog, as it stood then: where something else stands now, it was edited since.
-- JSON, as the files say it; `target` is relay:<name>, collection:<name>, access:<slug>, product:<name> or plan:<name>.
CREATE TABLE synced (
  environment_id INTEGER NOT NULL REFERENCES environment (id),
  target TEXT NOT NULL,
  content TEXT NOT NULL,
  synced_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, target)
) STRICT, WITHOUT ROWID;
