"""The operator's pages: all tenants, queues, workers, and what they may do."""
