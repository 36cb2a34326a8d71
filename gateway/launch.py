"""The program `moteloom`: Ctrl-C ends it with exit code 130 at any moment, also while it is still being imported."""

INTERRUPTED = 130


def main() -> int:
    """Run the command; return its exit code."""
    try:
        from gateway.cli import main as run

        return run()
    except KeyboardInterrupt:
        return INTERRUPTED
