"""Judge mutants in forks of one pytest process, which has collected the tests.

    python tools/mutant_forks.py REQUESTS ANSWERS tests/a/test_b.py …    (file descriptors, as tools/mutants.py opens them)

A line of JSON asks to run a test: {"test": id}, or with "file" and "text" where the file differs now from the text with
which it was collected. A fork gives the functions of that file their changed code and runs the test. It answers `passed`,
`failed`, or `unknown`: where the change is outside of functions, or a test of that name was not collected. A fork that
passes proves nothing, since a value of before the fork may be in use; one that fails where the unchanged tree passes does.
"""

import contextlib
import gc
import json
import os
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path
from types import CodeType, FunctionType

import pytest

_UNKNOWN = 2
_OF_FUNCTIONS = 0x3  # CO_OPTIMIZED and CO_NEWLOCALS: bodies of modules and classes have neither


def changed_code(before, after):
    """The code of functions that differs, by the code of before. Raises ValueError where a body that ran on import differs."""
    found = {}
    if before == after:
        return found
    is_function = before.co_flags & _OF_FUNCTIONS == _OF_FUNCTIONS
    if is_function:
        found[before] = after
    inner = [[each for each in code.co_consts if isinstance(each, CodeType)] for code in (before, after)]
    is_alike = [each.co_name for each in inner[0]] == [each.co_name for each in inner[1]]
    if not is_function and not (is_alike and _own_parts(before) == _own_parts(after)):
        raise ValueError(f"{before.co_name} ran when it was imported")
    for old, new in zip(*inner, strict=True) if is_alike else ():
        found.update(changed_code(old, new))
    return found


def _own_parts(code):
    """All of a body but the functions in it."""
    constants = [(type(each), each) for each in code.co_consts if not isinstance(each, CodeType)]
    return code.co_code, repr(constants), code.co_names, code.co_exceptiontable


def change_functions(functions, path, text):
    """Give functions of a file, which had this text, the code that it has now. Raises ValueError where that is not all."""
    before, after = (compile(each, str(path), "exec", dont_inherit=True) for each in (text, path.read_text("utf-8")))
    changed = changed_code(before, after)
    for function in functions:
        function.__code__ = changed.get(function.__code__, function.__code__)


def find_functions():
    """All functions by the file of their code."""
    found = defaultdict(list)
    for each in gc.get_objects():
        if type(each) is FunctionType:
            found[each.__code__.co_filename].append(each)
    return found


class ForkingRunner:
    """A pytest plugin that runs tests on request, each in a fork."""

    def __init__(self, requests, answers):
        self._requests, self._answers, self._failed = requests, answers, False

    def pytest_runtest_logreport(self, report):
        self._failed |= report.failed

    def pytest_runtestloop(self, session):
        items = {item.nodeid: item for item in session.items}
        gc.collect()
        self._functions = find_functions()
        gc.freeze()  # a collection in a fork would touch, and so copy, the memory of all objects
        print("ready", file=self._answers, flush=True)
        for line in self._requests:
            request = json.loads(line)
            item = items.get(request["test"])
            found = "unknown" if item is None else self._run_forked(item, request)
            print(found, file=self._answers, flush=True)
        return True

    def _run_forked(self, item, request):
        fork = os.fork()
        if fork == 0:
            os.setsid()  # so that processes of the test end with it
            code = _UNKNOWN
            try:
                path = Path(item.config.rootpath, request.get("file", "."))
                if path.is_file() and _is_imported(path):
                    change_functions(self._functions[str(path)], path, request["text"])
                item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
                code = int(self._failed)
            finally:
                os._exit(code)  # whatever was raised, the loop of the first process is not for a fork
        return ("passed", "failed", "unknown")[_wait_for(fork, request["seconds"])]


def _is_imported(path):
    return any(getattr(module, "__file__", None) == str(path) for module in list(sys.modules.values()))


def _wait_for(fork, seconds):
    """The exit code of a fork; _UNKNOWN where it takes longer, or a signal ends it."""
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(fork, os.WNOHANG)
        if done or time.monotonic() > end:
            break
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(fork, signal.SIGKILL)
    if not done:
        os.waitpid(fork, 0)
        return _UNKNOWN
    code = os.waitstatus_to_exitcode(status)
    return code if code in (0, 1) else _UNKNOWN


def main(arguments):
    sys.path[0] = os.getcwd()  # the private copy, not the folder of this file
    requests, answers, *rest = arguments
    with os.fdopen(int(requests)) as asked, os.fdopen(int(answers), "w") as answered:
        return pytest.main(rest, plugins=[ForkingRunner(asked, answered)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
