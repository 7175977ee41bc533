ALTER TABLE recent_request ADD COLUMN claimed text COLLATE "C";
