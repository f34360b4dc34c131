"""What the leader does so that the rest can forget about it."""
