"""What a running task says of itself: its log lines, and what became of its items."""
