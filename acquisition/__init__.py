"""What a measurement is, and when and where it is taken."""
