"""A proxy in front of a deployed model: the Open Inference Protocol on both sides."""
