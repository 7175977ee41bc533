-- Places of limits that nodes have drawn in the window that runs, by the keyed digest of the limit's name: nodes let through no more than one does.
CREATE TABLE limit_window (
  name bytea PRIMARY KEY,
  -- By the database's clock.
  ends_at bigint NOT NULL,
  taken bigint NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX limit_window_by_end ON limit_window (ends_at);
