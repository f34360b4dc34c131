"""How an attempt is run: each executor turns an attempt into an outcome."""
