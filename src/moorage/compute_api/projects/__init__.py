"""What users and projects have beside servers: keys, groups, limits, quotas."""
