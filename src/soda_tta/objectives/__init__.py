"""What a set of probabilities is worth without labels, and which pseudo-labels to trust."""
