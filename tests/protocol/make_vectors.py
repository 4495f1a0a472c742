"""Test vectors for whoever writes another implementation: `python tests/protocol/make_vectors.py` writes vectors.json.

Rules:
- Keys, edges, totals and masks are decimal strings, since they go up to 2^64 − 1; values are numbers, to be read as
  float64; bytes are hexadecimal.
- What is under "given" goes in, what is under "expected" comes out. The inputs are fixed: nothing is drawn at random.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path

import numpy as np

from midst.protocol.commitments import ORDER, H, commit
from midst.protocol.keys import Floats, first_bracket, make_keys
from midst.protocol.masks import hide, pair_key, pair_mask, public_key
from midst.protocol.participant import Holding, Participant
from midst.protocol.search import Cells, Goal, OwnValues, Rules, SearchState, contribution, rank_shares, roundest
from midst.protocol.statements import Agreement

FILE = Path(__file__).with_name("vectors.json")


def values_of(count, low, high):
    """Numbers of three decimals that look like any, from a linear congruential generator."""
    state, found = 12345, []
    for _ in range(count):
        state = (1103515245 * state + 12345) % 2**31
        found.append((1000 * low + state * (1000 * (high - low)) // 2**31) / 1000)
    return found


def case(name, columns, ranks, *, weights=None, **rest):
    """What goes into a search; columns: of each coordinate, of each participant, its values."""
    lists = [[[value] if isinstance(value, float | int) else value for value in column] for column in columns]
    people = list(zip(*lists, strict=True))
    weights = [1] * len(people) if weights is None else weights
    return {
        "name": name,
        "resolution": rest.pop("resolution", None),
        "bounds": rest.pop("bounds", None),
        "arity": rest.pop("arity", 3),
        "spacing": rest.pop("spacing", "rank"),
        "quantiles": rest.pop("quantiles", []),
        "opening": rest.pop("opening", []),
        "goals": [{"coordinate": c, "ranks": list(rank) if isinstance(rank, tuple) else [rank]} for c, rank in ranks],
        "participants": [{"weight": w, "values": list(own)} for own, w in zip(people, weights, strict=True)],
    }


FIFTEEN = {"columns": [values_of(15, -3, 3)], "ranks": [(0, 8)], "bounds": [-10.0, 10.0]}
NINE = {"columns": [values_of(9, 20, 80)], "ranks": [(0, 5)], "bounds": [0.0, 1000.0]}
FOUR = {"columns": [[1.5, 2.5, 3.5, 4.5]], "bounds": [0.0, 8.0]}
WARM = {"ranks": [(0, (2, 3))], "bounds": [0.0, 40.0], "resolution": "0.1"}
LISTS = [[1.0, 5.0, 9.0], [2.0], [4.0, 4.5], [7.0, -3.0, 2.0, 6.0]]
SALARIES = [52000.0, 48000.0, 52000.0, 61500.0, 52000.0, 39000.0]

CASES = [
    case("median of fifteen", **FIFTEEN),
    case("the same, seven thresholds", arity=7, **FIFTEEN),
    case("the same, one threshold, by value", arity=1, spacing="value", **FIFTEEN),
    case("the same, by key", spacing="key", **FIFTEEN),
    case("no bounds, heavy tails", [[1e300, -2.5e-300, 5e-324, -1e12, 3.0, 0.1, -0.0]], [(0, 4)]),
    case("a constant", [[1 / 3] * 5], [(0, 3)], bounds=[0.0, 1.0]),
    case("ties: salaries", [SALARIES], [(0, 3)], bounds=[0.0, 250000.0]),
    case("ties at a bound that is no exact decimal", [[0.3, 0.3, 0.3, 0.1]], [(0, 3)], bounds=[0.0, 0.3]),
    case("zeros of both signs", [[0.0, -0.0, 0.0, 1.0, -1.0]], [(0, 3)], bounds=[-4.0, 4.0], arity=2),
    case("adjacent floats", [[1.0, 1.0000000000000002, 1.0000000000000004]], [(0, 2)], bounds=[0.0, 2.0]),
    case("half to even", [[0.125, 0.375, 0.5, 0.625, 2.0]], [(0, 4)], bounds=[0.0, 4.0], resolution="0.25"),
    case("weights", ranks=[(0, 5)], weights=[1, 2, 4, 2], resolution="0.01", **FOUR),
    case("weights, some of them zero, else equal", ranks=[(0, 3)], weights=[2, 0, 2, 2], **FOUR),
    case("lists of different lengths", [LISTS], [(0, 5)], bounds=[-20.0, 20.0]),
    case("midpoint", [[12.3, 11.9, 14.2, 13.0]], **WARM),
    case("midpoint of a tie", [[12.3, 12.3, 14.2, 9.0]], arity=1, **WARM),
    case("midpoint of one heavy value", [[1.0, 2.1, 9.0]], [(0, (3, 4))], weights=[2, 2, 2], resolution="1/10"),
    case("quartiles of one run", [values_of(21, 0, 100)], [(0, 6), (0, 11), (0, 16)], bounds=[0.0, 100.0]),
    case("two coordinates", [values_of(5, 0, 1), values_of(5, -50, 50)], [(0, 3), (1, 3)], bounds=[-64.0, 64.0]),
    case("public quantiles", quantiles=[0.0, 30.0, 45.0, 60.0, 1000.0], **NINE),
    case("opening thresholds", opening=[[40.0, 55.0, 2000.0]], **NINE),
]
KEYS = [
    (None, [0.0, -0.0, 5e-324, -5e-324, 1.0, -1.0, 0.1, 1.7976931348623157e308, -1.7976931348623157e308]),
    ("0.01", [0.0, 0.01, 0.005, 0.015, 0.025, -0.005, 1234.565, 1e9]),
    ("1/3", [0.5, 1.0, -1.0, 0.16666666666666666, 0.16666666666666669]),
    ("0.5", [0.25, 0.75, -0.25, -0.75]),
]
BRACKETS = [(0.21, 0.3), (0.26, 0.29), (7.0, 13.0), (-45.0, -19.0), (-1.0, 2.0), (5e-324, 3.0), (1e22, 1e23)]
SHARES = [(8, 15, 3), (1, 2, 7), (1, 1, 1), (500, 1000, 2)]


def outcome(given):
    """The full course of a search, as everybody learns it."""
    keys = make_keys(None if given["resolution"] is None else Fraction(given["resolution"]))
    people, weights = given["participants"], [each["weight"] for each in given["participants"]]
    positive = {weight for weight in weights if weight}
    bracket = first_bracket(keys, None if given["bounds"] is None else tuple(given["bounds"]))
    rules = Rules(
        keys=keys,
        brackets=(bracket,) * len(people[0]["values"]),
        total=sum(each["weight"] * len(each["values"][0]) for each in people),
        unit=min(positive) if len(positive) == 1 else None,
        goals=tuple(Goal(goal["coordinate"], tuple(goal["ranks"])) for goal in given["goals"]),
        arity=given["arity"],
        spacing=given["spacing"],
        quantiles=tuple(given["quantiles"]),
        opening=tuple(tuple(keys.key(x) for x in each) for each in given["opening"]),
    )
    own = [
        OwnValues(tuple(keys.keys(np.sort(np.array(column, np.float64))) for column in each["values"]))
        for each in people
    ]
    search, steps = SearchState.begin(rules), []
    while search.question is not None:
        answers = [contribution(search.question, mine, weight) for mine, weight in zip(own, weights, strict=True)]
        totals = [sum(column) for column in zip(*answers, strict=True)]
        question = [
            {
                "kind": "cells" if isinstance(part, Cells) else "sum",
                "coordinate": part.coordinate,
                "edges": list(map(str, part.edges)),
            }
            for part in search.question
        ]
        steps.append({"question": question, "totals": list(map(str, totals))})
        search = search.fold(totals)
    return {
        "first_bracket": list(map(str, bracket)),
        "total": str(rules.total),
        "unit": None if rules.unit is None else str(rules.unit),
        "steps": steps,
        "answers": [{"sum_of_keys": str(a), "value": search.value(g)} for g, a in enumerate(search.answers)],
    }


def mask_case():
    """Three participants: secrets, and what each must know in order to derive its pair keys."""
    secrets = [hashlib.sha256(f"midst test vector {k}".encode()).digest() for k in range(3)]
    return {
        "charter": hashlib.sha256(b"charter").hexdigest(),
        "context": hashlib.sha256(b"context").hexdigest(),
        "participants": [
            {
                "number": k,
                "secret": secret.hex(),
                "identity": (k.to_bytes(4, "little") + bytes([k]) * 16 + public_key(secret)).hex(),
                "answers": [str(number) for number in (k, 2**63 + k, 0, 7, 1, 2, 3, 4, 5, 6)],
            }
            for k, secret in enumerate(secrets)
        ],
    }


def masked(given):
    """Public keys, pair keys, masks, and contributions behind them."""
    charter, context = (bytes.fromhex(given[name]) for name in ("charter", "context"))
    people = given["participants"]
    secrets = [bytes.fromhex(each["secret"]) for each in people]
    identities = [bytes.fromhex(each["identity"]) for each in people]
    public = [public_key(secret) for secret in secrets]

    def key_of(i, j):
        return pair_key(secrets[i], public[j], charter, identities[min(i, j)], identities[max(i, j)])

    def contribution_of(i):
        keys = {j: key_of(i, j) for j in everybody if j != i}
        return hide(list(map(int, people[i]["answers"])), i, keys, context, [1] * len(people[i]["answers"]))

    everybody = range(len(people))
    count = len(people[0]["answers"])
    return {
        "public_keys": [key.hex() for key in public],
        "pairs": [
            {
                "lower": i,
                "higher": j,
                "key": key_of(i, j).hex(),
                "mask": list(map(str, pair_mask(key_of(i, j), context, count))),
            }
            for i in everybody
            for j in everybody
            if i < j
        ],
        "contributions": [list(map(str, contribution_of(i))) for i in everybody],
    }


class _Unsigned:
    """Signs nothing: vectors are of what is signed."""

    certificate = b"certificate"

    def sign(self, data):
        return b""

    def verifier(self, number, certificate):
        return lambda data, signature: True


COMMITTED = [(0, 1), (1, 0), (1, 1), (2**64 - 1, 2**252), (ORDER - 1, 12345678901234567890)]


def session(verify):
    """Three participants of one session: every statement's body, in order; the last ones hold the final hash."""
    given, values, keys = mask_case(), (4.25, 6.25, 5.25), Floats()
    rules = Rules(keys, (first_bracket(keys, (0.0, 60.0)),), 3, 1, (Goal(0, (2,)),))
    agreement = Agreement(bytes.fromhex(given["charter"]), (1, 1, 1), False, lambda counts: rules, verify)
    people = [
        Participant(
            agreement,
            Holding(k, (np.array([keys.key(values[k])], np.uint64),), bytes.fromhex(each["secret"]), bytes([k]) * 16),
            _Unsigned(),
        )
        for k, each in enumerate(given["participants"])
    ]
    while not all(one.certified for one in people):
        said = [one.own[one.step] for one in people]
        for one in people:
            for statement in said:
                one.take(statement)
            one.advance(one.ready())
    return {
        "charter": given["charter"],
        "secrets": [each["secret"] for each in given["participants"]],
        "bounds": [0.0, 60.0],
        "arity": 3,
        "certificate": _Unsigned.certificate.hex(),
        "values": values,
        "statements": [[one.own[step].body.hex() for one in people] for step in range(len(people[0].own))],
        "totals": [list(map(str, totals)) for totals in people[0].totals],
        "value": people[0].search.value(0),
    }


def parts():
    """The arithmetic that a search is made of, piece by piece."""
    kinds = [(step, make_keys(None if step is None else Fraction(step)), values) for step, values in KEYS]
    return {
        "keys": [
            {"resolution": step, "value": value, "key": str(keys.key(value))}
            for step, keys, values in kinds
            for value in values
        ],
        "roundest": [{"low": low, "high": high, "x": roundest(low, high)} for low, high in BRACKETS],
        "rank_shares": [
            {"rank": rank, "inside": inside, "arity": arity, "shares": rank_shares(rank, inside, arity)}
            for rank, inside, arity in SHARES
        ],
    }


def make():
    """All of them."""
    return {
        "about": "Made by tests/protocol/make_vectors.py. Keys, edges, totals and masks are decimal strings.",
        "parts": parts(),
        "searches": [{"given": given, "expected": outcome(given)} for given in CASES],
        "masks": {"given": mask_case(), "expected": masked(mask_case())},
        "commitments": {
            "H": H.hex(),
            "committed": [{"number": str(v), "blinding": str(r), "point": commit(v, r).hex()} for v, r in COMMITTED],
        },
        "session": session(False),
        "verified session": session(True),
    }


def written(part, indent=""):
    """As text: on one line what has no lists or objects in it or is short."""
    flat = json.dumps(part)
    inner = part.values() if isinstance(part, dict) else part
    if len(flat) < 100 or not any(isinstance(each, dict | list) for each in inner):
        return flat
    deeper = indent + " "
    names = [f"{json.dumps(name)}: " for name in part] if isinstance(part, dict) else [""] * len(part)
    lines = [deeper + name + written(each, deeper) for name, each in zip(names, inner, strict=True)]
    opening, closing = "{}" if isinstance(part, dict) else "[]"
    return "\n".join([opening, ",\n".join(lines), indent + closing])


if __name__ == "__main__":
    FILE.write_text(written(make()) + "\n", encoding="utf-8")
