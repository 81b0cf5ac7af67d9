"""Bytes on the wire and in files."""
