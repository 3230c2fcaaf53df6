"""Who does the work: leases operations from the ledger, and takes each through its steps."""
