"""Fairlane beside its peers: the same work, the same server, the same run."""
