"""The program `moteloom`: Ctrl-C ends it with exit code 130 at any moment, also while it is still being imported."""

INTERRUPTED = 130


def main() -> int:
    """Run the command; return its exit code."""
    try:
        try:
            from gateway.cli import main as run

            return run()
        finally:
            import signal  # here, because an import can be interrupted

            if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
                # Python prints a traceback if Ctrl-C interrupts its own end.
                signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if not _is_interrupt(error):
            raise
        return INTERRUPTED


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C caused an error: Python makes another of it where it interrupts the making of a class."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None
