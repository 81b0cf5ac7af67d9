"""What lies on disk: whole files or none, locks, journals, and the folder of a run."""
