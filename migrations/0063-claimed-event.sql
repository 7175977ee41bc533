-- What a rejected request says that its event is: JSON { id, type }, cut and without control characters. No signature verified it.
ALTER TABLE recent_request ADD COLUMN claimed TEXT;
