"""Hunt for cases on which engine and oracle disagree.

    python -m tests.agreement.hunt --seed 7 --cases 500
    python -m tests.agreement.hunt --seed 7 --cases 500 --only 10.8 --stop 3
    python -m tests.agreement.hunt --seed 7 --cases 500 --maker since

`--only` takes what the generator calls its traits (join, nested, late, revised, union, loop, oneoff, history, clause) or
a section of the semantics; `--maker` takes another generator, of what the general one seldom makes. A case that disagrees is
shrunk and printed as a golden file.
"""

import argparse
import sys
import time
from collections import Counter
from functools import partial

from tests.agreement.compare import VERDICTS, agree
from tests.agreement.shrink import shrink
from tests.execution.past_query_generators import asked_of_history, scanning_history, since, within
from tests.execution.query_generators import looping, once
from tests.oracles.generate import case

SECTIONS = {
    "1.5": "late", "4": "join", "7": "nested", "10.6": "oneoff", "10.7": "history", "10.8": "loop", "11": "clause",
    "12.1": "late", "12.2": "revised",
}  # fmt: skip
SECONDS = 10
TRAITS = ("join", "nested", "late", "revised", "union", "loop", "oneoff", "history", "clause")
MAKERS = {made.__name__: made for made in (case, looping, once, asked_of_history, scanning_history, since, within)}
"""Each makes a case of a seed, or None where what it made is not what it is for."""


def hunt(seed, cases, only=None, stop=1, say=print, make=case, seconds=SECONDS):
    """Counters of the verdicts, of what cannot be executed or is not covered, of traits; prints what disagrees."""
    verdicts, reasons, traits, number = Counter(), Counter(), Counter(), 0
    while verdicts.total() < cases and verdicts["disagree"] < stop:
        made = make(f"{seed}.{number}")
        number += 1
        if made is None or (only and only not in made.traits):
            continue
        outcome = agree(made.schema, made.inputs, made.queries, seconds=seconds)
        verdicts[outcome.verdict] += 1
        traits.update(made.traits)
        traits["late or revised"] += bool({"late", "revised"} & made.traits)
        traits["non-empty"] += outcome.non_empty
        if outcome.verdict in ("not yet", "not covered"):
            reasons[f"{outcome.verdict}: {outcome.what}"] += 1
        if outcome.verdict == "disagree":
            judge = partial(agree, seconds=seconds)
            _, small = shrink(made.schema, made.inputs, made.queries, outcome, judge)
            say(f"# case {made.seed}, traits {' '.join(sorted(made.traits)) or 'none'}\n{small.report}")
    return verdicts, reasons, traits


def shares(verdicts, reasons, traits):
    """The counts as a table for people."""
    total = max(1, verdicts.total())
    lines = [f"{verdict:<15} {verdicts[verdict]:>6} {verdicts[verdict] / total:7.1%}" for verdict in VERDICTS]
    lines += [f"  {trait:<13} {count:>6} {count / total:7.1%}" for trait, count in traits.most_common()]
    return "\n".join(lines + [f"  {count:>5} x {what}" for what, count in reasons.most_common(12)])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--cases", type=int, default=200, metavar="K")
    parser.add_argument("--only", choices=(*TRAITS, *SECTIONS), metavar="SECTION")
    parser.add_argument("--maker", choices=MAKERS, default="case")
    parser.add_argument("--stop", type=int, default=1, metavar="K", help="stop at the K-th disagreement")
    args = parser.parse_args(arguments)
    began = time.monotonic()
    verdicts, reasons, traits = hunt(
        args.seed, args.cases, SECTIONS.get(args.only, args.only), args.stop, make=MAKERS[args.maker]
    )
    print(shares(verdicts, reasons, traits))
    print(f"{verdicts.total()} cases of seed {args.seed} in {time.monotonic() - began:.0f} s")
    return 1 if verdicts["disagree"] else 0


if __name__ == "__main__":
    sys.exit(main())
