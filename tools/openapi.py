"""Write docs/openapi.json, the OpenAPI document of the REST interface: `python tools/openapi.py`. A test says when it is stale."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
FILE = ROOT / "docs" / "openapi.json"


def text() -> str:
    """The document as its file has it; no station is needed, since no route is called."""
    from basestation.rest.api import make_api
    from basestation.rest.openapi import make_document

    return json.dumps(make_document(make_api(None, None)), indent=1, ensure_ascii=False) + "\n"  # type: ignore[arg-type]


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
