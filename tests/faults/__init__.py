"""A real system under a seeded workload and seeded faults, and what must hold of it afterwards."""
