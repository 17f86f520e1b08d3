"""What runs came to, for schedulers."""
