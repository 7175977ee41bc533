-- The type of the rejected event as its body names it, and the id of the event that arrived later. NULL: none is known.
ALTER TABLE rejected_delivery ADD COLUMN event_type text COLLATE "C";
ALTER TABLE rejected_delivery ADD COLUMN arrived_event text COLLATE "C";
