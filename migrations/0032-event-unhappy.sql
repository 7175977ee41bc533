-- With the relay's name in it, so that the unhappy events of one relay are found without reading those of the others, row by row.
DROP INDEX event_unhappy;
CREATE INDEX event_unhappy ON event (environment_id, state, seq, name_key) WHERE state IN ('failed', 'dead');
