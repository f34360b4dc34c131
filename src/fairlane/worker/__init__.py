"""The process that claims jobs, runs them and reports what became of them."""
