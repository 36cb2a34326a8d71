"""Jobs: long work for a user in processes of their own, beside a running station that they never delay."""
