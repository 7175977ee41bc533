-- The newest commit of each connection that writes: whether one is there, on the disk, is asked by its number.
CREATE TABLE writer_commit (
  connection text COLLATE "C" PRIMARY KEY,
  number bigint NOT NULL,
  -- When, by the database: those of connections that are long gone are deleted.
  at bigint NOT NULL
) WITH (fillfactor = 50);
