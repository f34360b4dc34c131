"""The HTTP API: what a caller may ask, in the words of the rest of Fairlane."""
