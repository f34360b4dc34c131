"""What a running Fairlane tells of itself: whom a log line is about, and traces."""
