-- The signing secret before the last rotation, sealed as the present one. It signs calls too until the given time; NULL: there is no overlap.
ALTER TABLE relay ADD COLUMN previous_signing_secret BLOB;
ALTER TABLE relay ADD COLUMN previous_signing_secret_until INTEGER;
