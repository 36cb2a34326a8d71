"""Admission: from a text to the one query in it, or to the error with its place in the text."""

from collections.abc import Iterator
from contextlib import contextmanager

from acquisition.errors import ScheduleError
from basestation.controller.lifetime import LifetimeError
from basestation.controller.world import World
from basestation.execution.plan_checks import StartBeforeRecordError, UnsupportedPlanError
from basestation.language.syntax import Explain
from basestation.planner.binder import bind_text
from basestation.planner.plan import Correction, Plan
from gateway.diagnostics import Diagnostic, DiagnosticError
from gateway.source import Source
from innet.errors import ProgramError


def bind_single_query(text: str, world: World) -> Plan:
    """Bind a text that has exactly one query. DiagnosticError, with all errors, if it has anything else."""
    plans = bind_text(text, world.catalog)
    if len(plans) != 1 or not isinstance(plans[0], Plan):
        raise _reject(text, "SN601", "submit one query at a time", plans[-1])
    if isinstance(plans[0].statement, Explain):
        raise _reject(text, "SN601", "EXPLAIN cannot be submitted; use `moteloom explain`", plans[0])
    return plans[0]


def bind_corrections(text: str, world: World) -> tuple[Correction, ...]:
    """Bind a text of REVISE, DELETE and INSERT. DiagnosticError, with all errors, if it has anything else."""
    bound = bind_text(text, world.catalog)
    found = tuple(each for each in bound if isinstance(each, Correction))
    queries = [each for each in bound if isinstance(each, Plan)]
    if queries:
        raise _reject(text, "SN601", "expected REVISE, DELETE or INSERT; submit a query as a query", queries[0])
    return found


@contextmanager
def rejecting_errors(text: str, plan: Plan) -> Iterator[None]:
    """Turn an error that keeps a query from running into a DiagnosticError."""
    try:
        yield
    except (UnsupportedPlanError, ProgramError) as error:
        raise _reject(text, "SN601", str(error), plan) from error
    except LifetimeError as error:
        raise _reject(text, "SN513", str(error), plan) from error
    except StartBeforeRecordError as error:
        raise _reject(text, "SN434", f"{error}; the first possible tick is {error.first}", plan) from error
    except ScheduleError as error:
        raise _reject(text, error.code, str(error), plan) from error


def _reject(text: str, code: str, message: str, plan: Plan | Correction) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, Source(text), plan.statement.span)])
