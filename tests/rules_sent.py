"""What a change of the rules comes to: the statements that it sends, and what the runtime decides by value."""

from __future__ import annotations

from functools import cache

from fencepost.adapters.mutants.mutant import Change
from fencepost.adapters.reference.rules import CONTRACT, Rules
from fencepost.adapters.reference.runtime import Runtime
from fencepost.adapters.reference.statements import POSTGRES, Statement
from fencepost.adapters.reference.table import table_for
from fencepost.model.errors import EXAMPLES
from fencepost.model.queues import QUEUES
from sqlalchemy import Dialect, MetaData
from sqlalchemy.dialects import sqlite

STATEMENT_FIELDS = {
    "claim_where", "claim_again", "claim_named", "claim_order", "claim_set", "claim_shape", "fence", "repeated",
    "kept_if", "cancel_where", "writes", "expired", "expired_again", "left_behind", "left_behind_again", "called_off",
    "called_off_again", "lapsed", "lapsed_again", "sweep_order", "recover", "call_off", "lapse", "late_fence",
}  # fmt: skip
"""The fields of the rules that statements are made of; all others are decisions of the runtime."""

DIALECTS: dict[str, Dialect] = {"pg": POSTGRES, "sqlite": sqlite.dialect(paramstyle="named")}


@cache
def statements(change: Change | None, queue: str, dialect: str) -> tuple[str, ...]:
    """Every statement with its parameters' values, as that database gets it."""
    rules = CONTRACT if change is None else change(CONTRACT)
    known = Runtime(QUEUES[queue], table_for(QUEUES[queue], MetaData()), dialect, rules).statements.all()
    return tuple(f"{name}: {text(each, DIALECTS[dialect])}" for name, each in known.items())


def text(statement: Statement, dialect: Dialect) -> str:
    compiled = statement.sql.compile(dialect=dialect)
    return f"{compiled} {sorted(str(bind.value) for bind in compiled.binds.values() if not bind.required)}"


@cache
def decisions(change: Change | None, dialect: str) -> dict[str, object]:
    """What the runtime decides by value on that database; a classification by what it says of the reviewed table."""
    rules = CONTRACT if change is None else change(CONTRACT)
    values = {name: getattr(rules, name) for name in Rules.__dataclass_fields__ if name not in STATEMENT_FIELDS}
    shape = rules.claim_shape[dialect]
    return values | {"classify": [rules.classify(code) for code, _ in EXAMPLES], "claim_shape": shape}
