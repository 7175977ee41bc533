-- Events that no call brought have an index by their trigger: they are found beside millions of others, and that there are none is known at once.
CREATE INDEX event_of_trigger ON event (environment_id, trigger, seq) WHERE trigger <> 'receiver';
-- With the trigger in it too, so that the unhappy events of one trigger are found without reading those of the others, row by row.
-- What is there goes last: what asks for its name waits for everything else, and everyone for that.
CREATE INDEX event_unhappy_of_trigger ON event (environment_id, state, seq, name_key, trigger) WHERE state IN ('failed', 'dead');
DROP INDEX event_unhappy;
ALTER INDEX event_unhappy_of_trigger RENAME TO event_unhappy;
