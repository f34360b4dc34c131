"""What may run: definitions as they are written, checked, compared and kept."""
