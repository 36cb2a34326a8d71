"""Running query: one query that runs: its output, and the operators that it uses."""

from collections.abc import Mapping
from typing import Any

from basestation.algebra.node import PlanNode, walk
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_merged import StreamMerged
from basestation.execution.graph import OperatorGraph
from basestation.execution.ingest.intake import Intake
from basestation.execution.ingest.stored_table import StoredTable
from basestation.execution.interfaces import DeliveryIntake, QueryGroup
from basestation.execution.joins.join_operator import JoinOperator
from basestation.execution.operator_builder import OperatorBuilder
from basestation.execution.output.output_group import OutputGroup
from basestation.execution.output.window_views import ViewSplit, make_view, split_view
from basestation.execution.plan_checks import UnsupportedPlanError, find_unsupported, may_cover_ahead
from basestation.execution.plan_interning import PlanInterner
from basestation.execution.query_block import QueryBlock
from basestation.planner.plan import Plan


class RunningQuery:
    """One query in the engine: its blocks, its output group, and its place in the operator graph."""

    # There may be tens of thousands: slots save half of their memory.
    __slots__ = (
        "_graph",
        "_interner",
        "_member",
        "_signatures",
        "blocks",
        "folds",
        "key",
        "number",
        "output_group",
        "sensed",
    )

    def __init__(
        self,
        number: int,
        plan: Plan,
        root: PlanNode,
        graph: OperatorGraph,
        interner: PlanInterner,
        intakes: Mapping[str | int, DeliveryIntake[Any]],
        tables: Mapping[str, StoredTable],
        now: int,
        first: int,
        reports_from: Mapping[str, int],
        live: bool = False,
    ) -> None:
        """Build the operators of a query that begins in clock tick `now`.

        `plan` is as it was bound, `root` its tree after the rewrites; `intakes` are by extent, and by number those of folds.
        `first` is the first tick on record. `reports_from` has by extent the tick from which on reports of filtered readings
        hold for this query. A `live` query may go on with a loop that has evaluated much at one tick.
        """
        missing = find_unsupported(plan)
        if missing:
            raise UnsupportedPlanError(missing)
        self.number = number
        early = plan.options.deliver_within is not None  # then an answered window may be withdrawn (11)
        split = ViewSplit(root, root.columns) if early else split_view(root)
        shared = interner.take(split.windows, wide=split.open)
        view = make_view(split, shared)  # which may add aggregates to the shared plan
        builder = OperatorBuilder(plan, shared, graph, intakes, tables, now, first, reports_from, live)
        try:
            self.key = builder.output(split, view)
        except MemoryError:
            interner.release(tuple(shared.signatures))
            raise
        self._graph, self._interner, self._signatures = graph, interner, tuple(shared.signatures)
        below = graph.below(self.key)
        self._member = below[-1]
        builder.enter(self._member, number)
        output = self._member.output
        if output.output_group is None:
            within = plan.options.deliver_within
            output.output_group = OutputGroup(output, below, within, within is not None or may_cover_ahead(plan.root))
        self.output_group: QueryGroup = output.output_group
        self.blocks = tuple(each for block in below if isinstance(block, QueryBlock) for each in block.all)
        acquired = {node.extent.name for node in walk(plan.root) if isinstance(node, StreamAcquire)}
        found = [intakes[name] for name in sorted(acquired)]
        self.sensed = tuple(intake for intake in found if isinstance(intake, Intake))
        """The intakes of the sensed extents that it reads."""
        self.folds = tuple(node.number for node in walk(root) if isinstance(node, StreamMerged))
        """The numbers of the folds whose partial states it reads."""

    def stop(self) -> None:
        """Stop using operators; those without other users are dropped."""
        self._member.leave(self.number)
        self._graph.release([self.key])
        self._interner.release(self._signatures)

    @property
    def joins(self) -> list[JoinOperator]:
        """The joins of the query, those of subqueries before those around them."""
        return [block.join for block in self.blocks if block.join is not None]
