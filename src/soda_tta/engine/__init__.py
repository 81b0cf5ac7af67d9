"""The run: how a method, its images and a metered model become a result."""
