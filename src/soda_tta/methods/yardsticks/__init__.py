"""White-box yardsticks: what touching the model would bring."""
