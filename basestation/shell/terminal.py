"""The terminal of the shell: prompt, history, keys and completion. The only module that imports prompt_toolkit."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth

from acquisition.extent import Catalog
from basestation.planner.completion import complete
from basestation.shell.interpreter import COMMANDS, Interpreter, is_complete

_WITH_QUERY = ("explain", "plot", "submit")


def run_terminal(interpreter: Interpreter, catalog: Callable[[], Catalog]) -> None:
    """Read statements and commands from a terminal until its user ends the shell."""
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    session: PromptSession[str] = PromptSession(
        history=open_history(os.environ),
        completer=ShellCompleter(catalog),
        complete_while_typing=False,
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation=lambda width, line, is_wrapped: "...> ".rjust(width),
        color_depth=ColorDepth.DEPTH_1_BIT if plain else None,
    )
    while not interpreter.is_over:
        try:
            text = session.prompt("moteloom> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        interpreter.run(text)


def open_history(environment: Mapping[str, str]) -> History:
    """The history of earlier shells, which only its user reads; that of this shell alone where it cannot be kept."""
    state = environment.get("XDG_STATE_HOME") or os.path.join(environment.get("HOME", ""), ".local/state")
    path = Path(state) / "moteloom" / "history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600))
    except OSError:  # a read-only home is no error: the shell works without its past
        return InMemoryHistory()
    return FileHistory(str(path))


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def accept_or_continue(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
        elif is_complete(buffer.text) and buffer.document.is_cursor_at_the_end:
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


class ShellCompleter(Completer):
    """Completes commands, and statements as the parser expects them."""

    def __init__(self, catalog: Callable[[], Catalog]) -> None:
        self._catalog = catalog

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text, cursor, before = document.text, document.cursor_position, document.text_before_cursor
        if before.lstrip().startswith("\\"):
            command, blank, argument = before.lstrip()[1:].partition(" ")
            if not blank:
                yield from (Completion(name, -len(command)) for name in COMMANDS if name.startswith(command))
            elif command == "d":
                names = (extent.name for extent in self._catalog())
                yield from (Completion(name, -len(argument)) for name in names if name.startswith(argument))
            if not blank or command not in _WITH_QUERY:
                return
            begin = cursor - len(argument)
            text, cursor = text[begin:], len(argument)
        found = complete(text, cursor, self._catalog())
        for item in found.items:
            yield Completion(item.text, found.start - cursor, display_meta=item.detail or item.kind)
