"""What the product tells of itself in numbers: see docs/metrics.md."""
