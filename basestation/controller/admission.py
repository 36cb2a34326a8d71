"""Asking: a text as the one query that it is, and why one cannot be run, with its place in the text."""

from collections.abc import Iterator
from contextlib import contextmanager

from acquisition.errors import ScheduleError
from basestation.controller.lifetime import LifetimeError
from basestation.controller.world import World
from basestation.execution.operator_builder import StartBeforeRecordError, UnsupportedPlanError
from basestation.language.diagnostics import Diagnostic, DiagnosticError
from basestation.language.syntax import Explain
from basestation.planner.binder import bind_text
from basestation.planner.plan import Plan
from gateway.source import Source
from innet.errors import ProgramError


def bind_single_query(text: str, world: World) -> Plan:
    """Refused if it is anything else."""
    plans = bind_text(text, world.catalog)
    if len(plans) != 1 or not isinstance(plans[0], Plan):
        raise _refused(text, "SN601", "anything but one query at a time cannot be deployed yet", plans[-1])
    if isinstance(plans[0].statement, Explain):
        raise _refused(text, "SN601", "EXPLAIN cannot be deployed", plans[0])
    return plans[0]


@contextmanager
def rejecting_errors(text: str, plan: Plan) -> Iterator[None]:
    """What keeps a query from being run is Refused."""
    try:
        yield
    except (UnsupportedPlanError, ProgramError) as error:
        raise _refused(text, "SN601", str(error), plan) from error
    except LifetimeError as error:
        raise _refused(text, "SN513", str(error), plan) from error
    except StartBeforeRecordError as error:
        raise _refused(text, "SN434", f"{error}; the first possible tick is {error.first}", plan) from error
    except ScheduleError as error:
        raise _refused(text, error.code, str(error), plan) from error


def _refused(text: str, code: str, message: str, plan: Plan) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, Source(text), plan.statement.span)])
