-- The schedule of automatic backups that an owner set, at most one row. It has an effect only where the rows are in relay.db.
CREATE TABLE backup_schedule (
  one bigint PRIMARY KEY CHECK (one = 1),
  every_hours bigint,
  keep bigint NOT NULL
);
