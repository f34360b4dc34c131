"""One file a scenario: `measure(stage)` gives its figures, named with their units."""
