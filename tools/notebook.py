"""Run the code cells of a notebook in order, in one namespace, without Jupyter.

    python tools/notebook.py NOTEBOOK            compare what each cell shows with the notebook; exit code 1 if it differs
    python tools/notebook.py NOTEBOOK --write    write what each cell shows into the notebook

A cell shows the text that it prints and the value of its last line: as SVG if the value has `_repr_svg_`, else as text.
Cells run in the folder of the notebook.
"""

import argparse
import ast
import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any


def run_cells(notebook: dict[str, Any]) -> None:
    """Replace the outputs of each code cell by those of a run."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for count, cell in enumerate((each for each in notebook["cells"] if each["cell_type"] == "code"), 1):
        cell["execution_count"] = count
        cell["outputs"] = run_cell("".join(cell["source"]), count, namespace)


def run_cell(text: str, count: int, namespace: dict[str, Any]) -> list[dict[str, Any]]:
    """Run one cell; return its outputs."""
    name = f"cell {count}"
    body = ast.parse(text, name).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), name, "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines_of(printed.getvalue())})
    if value is not None:
        svg = {"image/svg+xml": lines_of(value._repr_svg_())} if hasattr(value, "_repr_svg_") else {}
        data = {**svg, "text/plain": lines_of(repr(value))}
        outputs.append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return outputs


def lines_of(text: str) -> list[str]:
    """The lines of a text, as notebooks hold them."""
    return text.splitlines(keepends=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="run the code cells of a notebook")
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--write", action="store_true", help="write what the cells show")
    options = parser.parse_args()
    path = options.notebook.resolve()
    before = path.read_text(encoding="utf-8")
    notebook = json.loads(before)
    os.chdir(path.parent)
    run_cells(notebook)
    after = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    if options.write:
        path.write_text(after, encoding="utf-8")
        return 0
    for then, now in zip(json.loads(before)["cells"], notebook["cells"], strict=True):
        if then != now:
            print(
                f"the notebook has\n{json.dumps(then, indent=1, ensure_ascii=False)}\nand a run shows\n{json.dumps(now, indent=1, ensure_ascii=False)}",
                file=sys.stderr,
            )
    return 0 if before == after else 1


if __name__ == "__main__":
    sys.exit(main())
