-- Work remembers its person: the run's, where the event is about another one since. NULL: the event's person.
ALTER TABLE run ADD COLUMN person_id text COLLATE "C";

-- Whether a bulk replay also runs what was done for another person.
ALTER TABLE bulk_replay ADD COLUMN move bigint NOT NULL DEFAULT 0;

-- A purchase that moved to another person leaves its ref to the new purchase, so that a ref is unique among the others only.
ALTER TABLE purchase ADD COLUMN moved_to text COLLATE "C";
ALTER TABLE purchase DROP CONSTRAINT purchase_environment_id_kind_ref_key;
CREATE UNIQUE INDEX purchase_under_ref ON purchase (environment_id, kind, ref) WHERE moved_to IS NULL;
