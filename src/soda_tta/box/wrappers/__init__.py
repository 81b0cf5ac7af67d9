"""Boxes around boxes: each does one thing and otherwise is what it wraps."""
