"""Boxes around boxes: each does one thing and otherwise behaves like the box inside."""
