"""Tagged windows: windows of slices that have the rows of many queries, which a column tells apart."""

from abc import abstractmethod

from basestation.algebra.expression import Expression
from basestation.execution.columns.window_batch import WindowBatch
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.interfaces import View
from basestation.execution.slices.slice_windows import SliceWindows


class TaggedSliceWindows(SliceWindows):
    """SliceWindows with the rows of all queries."""

    @abstractmethod
    def match(self, view: View) -> Expression:
        """The predicate of the rows of a view."""

    @property
    @abstractmethod
    def key_ids(self) -> set[int]:
        """The ids of the columns that the queries group by."""

    @abstractmethod
    def changed_content(self, given: WindowBatch, by_group: bool) -> WindowContents:
        """The rows of windows that the last step of the stream may change.

        With `by_group`, rows of groups that it leaves alone may be missing, the same before the step and after it.
        """
