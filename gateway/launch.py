"""The program `moteloom`: Ctrl-C ends it with exit code 130 at any moment, also while it is still being imported."""

import sys

INTERRUPTED = 130
AGAIN_S = 0.05
"""An interrupt that Python drops comes again after so many seconds."""


def main() -> int:
    """Run the command; return its exit code."""
    sys.unraisablehook = _repeat_interrupt
    try:
        try:
            from gateway.cli import main as run

            return run()
        finally:
            import signal  # here, because an import can be interrupted

            signal.setitimer(signal.ITIMER_REAL, 0)
            if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
                # Python prints a traceback if Ctrl-C interrupts its own end.
                signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if not _is_interrupt(error):
            raise
        return INTERRUPTED


def _is_interrupt(error: BaseException) -> bool:
    """Whether Ctrl-C caused an error: Python makes another of it where it interrupts the making of a class, and Pydantic a text."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__
    return cause is not None or str(error).rstrip(": ").endswith("KeyboardInterrupt")


def _repeat_interrupt(dropped: "sys.UnraisableHookArgs") -> None:
    """Let an interrupt come again that Python drops because it came in a callback, as imports have them."""
    if dropped.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(dropped)
        return
    import signal

    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
