"""The current content of each section of a golden file.

`python -m tests.golden.expectations --rewrite [FILE …]` writes the sections into the files; review the
diff before the commit. It does not write an answer that the oracle does not confirm.
"""

import sys
from pathlib import Path

from basestation.explain import explain_statement, memory_line, option_lines, physical_lines, render_statement
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from gateway.diagnostics import DiagnosticError
from tests.golden.case_run import CONFIRMED, answer_of, compare_with_oracle, ledger_of
from tests.golden.golden_file import golden_files, read_golden

QUERIES = Path(__file__).parent / "queries"


def plan_of(golden, case):
    """The section `plan` of a query."""
    bound = bind_text(case.text, read_schema(golden.schema))
    return "\n".join(_plan_text(explain_statement(b, n)) for n, b in enumerate(bound, 1))


def _plan_text(explained):
    """Kind and columns, algebra, names of rewrites, pushdown, running operators and memory."""
    if explained["type"] == "correction":
        return render_statement(explained).rstrip()
    what = "one-off query" if explained["once"] else f"{explained['kind']} query"
    columns = ", ".join(f"{c['name']}:{c['type']}" for c in explained["columns"])
    lines = [f"{what}: {columns}", *option_lines(explained)]
    if explained["additions"]:
        lines.append("beyond the paper: " + ", ".join(f"{a['what']} ({a['section']})" for a in explained["additions"]))
    lines += explained["algebra"].splitlines()
    lines.append("rewrites: " + (", ".join(step["rule"] for step in explained["rewrites"]) or "none"))
    lines += _network_lines(explained["network"])
    return "\n".join([*lines, *physical_lines(explained), f"memory: {memory_line(explained['memory'])}"])


def _network_lines(decisions):
    """The operators that motes may run, and the codes of the others."""
    names = [(d["operator"].split()[0], d) for d in decisions]
    moves = [f"{name}{' in part' if d['reason'].startswith('in part: ') else ''}" for name, d in names if d["moves"]]
    stays = [f"{name} ({d['code']})" for name, d in names if not d["moves"]]
    return [f"{word}: {', '.join(listed)}" for word, listed in (("moves", moves), ("stays", stays)) if listed]


def refusal_of(golden, case):
    """The diagnostics of an error case; None if there are none."""
    try:
        if case.in_schema:
            read_schema(case.text)
        else:
            bind_text(case.text, read_schema(golden.schema))
    except DiagnosticError as refused:
        return "\n\n".join(d.render() for d in refused.diagnostics)
    return None


def rewrite(path):
    """Write the current sections into a file; the complaints about sections that are not written."""
    golden, complaints = read_golden(path), []
    for case in golden.cases:
        if case.word == "ledger":
            case.expected[""] = ledger_of(golden)
        elif case.word == "query":
            try:
                case.expected["plan"] = plan_of(golden, case)
            except DiagnosticError as refused:
                sys.exit(
                    f"{path}: query {case.name} is refused:\n" + "\n".join(d.render() for d in refused.diagnostics)
                )
        else:
            explained = refusal_of(golden, case)
            if explained is None:
                sys.exit(f"{path}: error {case.name} is accepted")
            case.expected[""] = explained
    for case in golden.cases:
        if case.word == "query":
            complaints += _answered(golden, case)
    Path(path).write_text(golden.render(), encoding="utf-8")
    return complaints


def _answered(golden, case):
    answer = answer_of(golden, case)
    outcome = None if answer.startswith("later: ") else compare_with_oracle(golden, case)
    if outcome is not None and outcome.verdict not in CONFIRMED:
        return [
            f"{golden.path}: query {case.name} is not confirmed: {outcome.verdict}\n{outcome.report or outcome.what}"
        ]
    case.expected["answer"] = answer
    return []


if __name__ == "__main__":
    if sys.argv[1:2] != ["--rewrite"]:
        sys.exit("usage: python -m tests.golden.expectations --rewrite [FILE …]")
    refused = [complaint for path in sys.argv[2:] or golden_files(QUERIES) for complaint in rewrite(path)]
    sys.exit("\n\n".join(refused) or None)
