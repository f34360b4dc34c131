"""What can be done to a system, by what it hits."""
