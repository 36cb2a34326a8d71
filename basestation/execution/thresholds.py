"""Thresholds of the engine: sizes from which on it takes another way to the same answer.

No threshold shows in an answer. tests/golden/size_overrides.py replaces them with extreme values, so that small cases take every
way. Read them as `thresholds.NAME` when they are needed; a copy made at import would not follow that replacement.

Each comment says what the two ways are, and what was measured or reasoned when the value was set.
"""

# --- integer keys: a table by value instead of a sort or search ----------------------------------------------------------

DENSE_FACTOR, DENSE_SLACK = 4, 1024
"""A table with at most FACTOR * values + SLACK entries is filled and read sequentially. That costs less than to sort the values,
as long as the table is a few times their size; the slack is what fits into the L1 cache anyway."""

# --- growing arrays: one policy for all containers ------------------------------------------------------------------------

GROWTH_DIVISOR, MIN_SPARE = 8, 8
"""A full array grows to size + size // DIVISOR + MIN_SPARE entries. More spare room means fewer copies, but memory that stands idle:
an eighth keeps a state of weeks flat (tests/bench) and costs 8 copies of an entry on average."""
PACKED_VALUES, PACKED_MOST = 2**7, 2**13
"""The last values of a packed array, between so many and twice as many, are not compressed: new windows are read often. A block has
at most about the second: it takes 40 µs to read one value of it. Ticks of windows of rows take 0.02 to 1 byte each in blocks, not 8."""
MIN_COMPACTED = 64
"""An array of more than so many entries is copied to the front once half of it was dropped; a smaller one isn't worth a copy."""
SPARSE_FACTOR = 4
"""An array that is more than so many times as long as what was used of it is replaced by a shorter one when entries are dropped."""

# --- tuples in parts: concatenate now or later -----------------------------------------------------------------------------

PENDING_PARTS = 64
"""Parts that wait for the watermark are merged when there are more: each step looks at the edges of each part."""
BUFFER_SCAN_PARTS, BUFFER_PARTS = 64, 1024
"""A buffer of more parts than the first is concatenated before each part is looked at. One of more than the second concatenates all
parts but the first, which may be long."""
LOG_PARTS = 256
"""So many small parts that were added last to the log of an extent are concatenated into one."""
BINARY_SEARCH_ROWS = 16
"""With more rows per window than this, binary search finds the edges of windows faster than counting the rows does."""

# --- steps ------------------------------------------------------------------------------------------------------------------

MAX_STEP_TUPLES = 1 << 16
"""One step takes at most so many tuples of an extent, so that its arrays stay in the caches and a batch of any size takes the memory
of this one."""
STEP_ROWS = 1 << 20
"""Rows that all operators together should make in one step of many clock ticks."""
FIRST_STEP, STEP_GROWTH = (1 << 10, 1 << 10), 4
"""The tuples and the ticks of the first step with a new query, and how many times more the next step may take."""
INTAKE_COPIES, UNCHECKED_BYTES = 8, 1 << 20
"""The intake of a step takes at most so many times the bytes of its deliveries; up to 4.8 times were measured, for tuples out of order.
A step that takes no more than the second is not checked for room."""
COALESCED_BATCHES, COALESCED_TUPLES = 2**9, 2**14
"""So many batches, or tuples, are taken in without waiting for more. A batch of so many tuples is not copied to coalesce it."""
IDENTITY_CHECK_TUPLES = 1024
"""Up to so many tuples, two columns are compared entry by entry; for more, only whether they are the same array."""
PRUNE_AFTER_TUPLES = 2**13, 2**16
"""State is pruned after half as many new tuples as are held, within these bounds, however few steps took them. So state never
is much more than it has to be, and the allocator reuses its memory."""

# --- outputs ----------------------------------------------------------------------------------------------------------------

OUTPUT_WINDOWS = 2**14
"""So many windows of several queries are answered together: temporary arrays of that size are reused from the caches."""

# --- predicate index --------------------------------------------------------------------------------------------------------

UNINDEXED_QUERIES, YOUNG_QUERIES = 4, 16
"""Up to so many queries are checked one by one: without an index at all, and beside an index before it is built anew."""
SPAN_FACTOR, SPAN_SLACK = 16, 2**12
"""If spans cover at most FACTOR * spans + SLACK places in total, each place lists its spans; otherwise a segment tree does."""

# --- slices -----------------------------------------------------------------------------------------------------------------

MATRIX_FACTOR, MATRIX_SLACK = 4, 1024
"""Cells are spread out to a matrix of slices and groups if it has at most FACTOR * cells + SLACK entries: merging whole rows of a
matrix costs a fraction of merging cell by cell, as long as most of its entries are there. Below SLACK groups, unused ones stay."""
WAITING_TUPLES = 2**14
"""So many tuples do not wait to be folded until a window is read: folding them later would read them from outside of the caches."""
OPEN_SLICES, PREFIX_FACTOR = 8, 4
"""The last slices of a landmark window that are not merged into its prefix: a reading that is so late costs no reading of the log. A
prefix is begun when it replaces so many times as many cells as there are groups."""
UNFOLDED_SLICES = 64
"""Of so many slices readings are read from the log at once when a prefix is replaced by its slices: an hour of 1,000 motes takes some
megabytes, a day a hundred."""
LINEAGE_PAIRS = 2**18
"""About so many pairs of a filter and a tuple are made at once when the past is read, and wait to be folded: some tens of
megabytes."""
UNTRIMMED_ROWS = 2**7
"""State of so few rows is dropped when all state is pruned, not earlier: looking at it again would cost more than it takes."""
SEGMENT_ROWS = 2**12
"""So many rows that windows left behind are one segment. To read a row again reads all of its segment, some 0.2 ms; a day of 54 motes
has 150 segments, which take 7 kB."""
WAITING_VERSIONS = 2**12
"""Waiting tuples are treated as versions in a step with corrections, unless there are more of them times windows than this: then
folding them costs less."""

# --- joins ------------------------------------------------------------------------------------------------------------------

JOIN_COMBINATIONS = 2**20
"""Without a key, so many combinations are made and tested together: their columns take some tens of megabytes."""
SMALL_RUN = 512
"""An index run of fewer positions is merged with the one after it: searching it by itself would cost a probe as much as a large one."""
COUNT_TABLE_FACTOR = 4
"""A table of counts has at most so many cells for each position and probe: filling it costs less than bisecting them."""
DEAD_TUPLES, DEAD_SHARE = 64, 3
"""Dead tuples of a join are cleared away when there are more than so many, and more than one in so many: clearing copies the rest
and builds indexes again."""
SHARED_WINDOWS = 3
"""Rows in fewer windows than this, on average, are joined once for each of them: then they come in the order of windows."""
SAMPLED_WINDOWS = 64
"""About so many windows are looked at to estimate how much windows overlap."""
DELTA_SHARE = 0.5
"""If combinations share more than this part of their rows with others, only rows with a tuple that came or went are joined."""
