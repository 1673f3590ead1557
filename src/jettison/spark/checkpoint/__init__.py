"""The checkpoint folder: its lock, the plan log, the ledger, checksums, retention.

Comes in: small records by batch id.
Goes out: the same records after a restart, or an error that names the file and the remedy. The number of files is
bounded.
"""
