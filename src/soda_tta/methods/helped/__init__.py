"""Methods with a helper: a local network for the same classes, which costs no query."""
