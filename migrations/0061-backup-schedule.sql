-- The schedule of automatic backups that an owner set, at most one row. every_hours is NULL while they are off.
CREATE TABLE backup_schedule (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  every_hours INTEGER,
  keep INTEGER NOT NULL
);
