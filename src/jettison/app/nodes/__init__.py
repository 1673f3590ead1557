"""The commands for a network on several nodes: `plan`, `explain` and `simulate` call these where a file has `nodes`."""
