"""What motes cost: tables of hardware as data, and what a plan is predicted to use of them."""
