"""The precedence of operators (semantics 2.1)."""

OR, AND, NOT, COMPARE, SUM, PRODUCT, SIGNED = range(1, 8)
"""The precedences; a higher one binds more tightly."""

OPERATORS = {
    "OR": OR, "AND": AND,
    "=": COMPARE, "<>": COMPARE, "!=": COMPARE, "<": COMPARE, "<=": COMPARE, ">": COMPARE, ">=": COMPARE,
    "==": COMPARE, "IS": COMPARE, "IN": COMPARE, "LIKE": COMPARE, "BETWEEN": COMPARE, "NOT": COMPARE,
    "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT,
}  # fmt: skip

COMPARISONS = frozenset(("=", "<>", "!=", "<", "<=", ">", ">="))
