"""One file per kind of deployed model."""
