-- The number of commits that changed everything, so that each node notices those of others.
ALTER TABLE writer_turn ADD COLUMN number bigint NOT NULL DEFAULT 0;

-- The node that wrote each scope last: an environment, or 0 for the rows of no environment.
CREATE TABLE writer_scope (scope bigint PRIMARY KEY, node text COLLATE "C" NOT NULL);
