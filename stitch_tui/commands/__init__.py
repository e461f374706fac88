"""The commands, one module a group; each imports what it needs only when it runs."""
