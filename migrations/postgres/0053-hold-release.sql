-- The newest event when the hold was released: up to it, events of all relays of the environment run in the order of their arrival. NULL: no release is in progress.
ALTER TABLE environment ADD COLUMN released_through bigint;
