"""Makes jobs by itself: of events, and by the clock."""
