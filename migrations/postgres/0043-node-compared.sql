-- What nodes have to have alike: the public origin ('': none was given), and their own clock as they were seen last; null in a row of an earlier version.
ALTER TABLE node ADD COLUMN base_url text COLLATE "C";
ALTER TABLE node ADD COLUMN clock_at bigint;
