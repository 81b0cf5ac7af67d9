"""One module per layout of data on disk."""
