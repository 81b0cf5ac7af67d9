"""Whether to deploy what was learned: the verdict, certificates from labels, accuracy without them."""
