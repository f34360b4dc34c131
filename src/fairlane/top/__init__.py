"""`fairlane top`: what goes on now, read from counters, on a page of a terminal."""
