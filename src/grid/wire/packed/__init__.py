"""The packed form of batched calls: many ranges, slots, stores, or questions in one message. Pure."""
