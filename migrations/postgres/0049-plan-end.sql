-- The event that ended it, or the last one that would have: a payment that arrived before it starts the plan no more. Null: it was ended otherwise, by
-- an earlier version, or it goes on.
ALTER TABLE subscription ADD COLUMN ended_event_id text COLLATE "C";
-- The event whose payment for it arrived last: one that arrived before it takes nobody elsewhere. Null: of a card payment, of an earlier version, or none.
ALTER TABLE subscription ADD COLUMN paid_event_id text COLLATE "C";
