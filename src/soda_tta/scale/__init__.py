"""Archives of millions of images and clusters of machines, on engines that exist."""
