"""The ledger over HTTP, for administrators."""
