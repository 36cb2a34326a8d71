"""Loop SQL: the windows of for-loops (semantics 10.8)."""

from collections.abc import Sequence

from basestation.algebra.node import PlanNode
from basestation.algebra.window import LoopWindow
from basestation.history.refusal import SparkRefusedError
from basestation.history.statement import SparkStatement, StreamRelation, WindowRelation


def loop_product(
    statement: SparkStatement, streams: Sequence[tuple[LoopWindow, StreamRelation]], inputs: Sequence[PlanNode]
) -> WindowRelation:
    raise SparkRefusedError("for-loops are not compiled yet")
