"""One file per layout of data on disk."""
