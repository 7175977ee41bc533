-- The event that ended it, or the last one that would have: a payment that arrived before it starts the plan no more. Null: it was ended otherwise, by
-- an earlier version, or it goes on.
ALTER TABLE subscription ADD COLUMN ended_event_id TEXT;
