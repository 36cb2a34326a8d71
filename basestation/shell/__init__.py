"""The interactive shell: statements and commands at a prompt, on a running station or on recordings."""
