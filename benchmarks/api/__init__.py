"""What the HTTP API costs, beside the least that one could do."""
