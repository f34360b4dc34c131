"""What operators ask and change, across tenants."""
