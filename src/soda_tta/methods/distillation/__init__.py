"""Methods that distil the model's answers into a network of their own."""
