"""JSON files that can't be cut off or edited unnoticed: a schema number first, a footer with counts and a digest last.

It knows nothing of what the documents say; every report that is read back by a program goes through here.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FOOTER = "footer"


class ResultError(Exception):
    """A result file can't be read or trusted. The message names the file and says what to do."""


def digest(document: Mapping[str, Any]) -> str:
    """The SHA-256 (hex) of a JSON document without its footer, whatever the order or the layout of its keys."""
    rest = {key: value for key, value in document.items() if key != FOOTER}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def sealed(body: Mapping[str, Any], counted: Iterable[str]) -> dict[str, Any]:
    """The document with its footer: the length of each list named in `counted`, and the digest of the rest."""
    counts = {name: len(body[name]) for name in counted}
    return {**body, FOOTER: {**counts, "digest": digest(body)}}


def write_document(document: Mapping[str, Any], path: Path) -> None:
    """Write a document so that a reader sees the old file or the whole new one; makes missing folders.

    Raises:
        OSError: the place can't be written to.
    """
    write_text(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n", path)


def write_text(text: str, path: Path) -> None:
    """Write a text so that a reader sees the old file or the whole new one; makes missing folders.

    Raises:
        OSError: the place can't be written to.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)  # mkstemp makes private files; a report is for everybody who sees its folder
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read_document(path: Path, schema: int, counted: Iterable[str]) -> dict[str, Any]:
    """The document without its footer, once schema, counts and digest were found right.

    Raises:
        ResultError: the file is missing, cut off, edited, no such document, or of another schema than `schema`.
    """
    try:
        document = json.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise ResultError(
            f"{path}: can't be read ({error.strerror}); give the path of a file that a run wrote"
        ) from error
    except ValueError as error:
        raise ResultError(f"{path}: cut off, or not JSON ({error}); write it again with a new run") from error
    if not isinstance(document, dict) or not isinstance(document.get("schema"), int):
        raise ResultError(f"{path}: no fencepost result, it has no schema number; give a file that a run wrote")
    if document["schema"] > schema:
        raise ResultError(
            f"{path}: has schema {document['schema']}, this version reads {schema}; read it with a newer fencepost"
        )
    if document["schema"] < schema:
        raise ResultError(
            f"{path}: has schema {document['schema']}, this version reads {schema}; write it with a new run"
        )
    footer = document.pop(FOOTER, None)
    if not isinstance(footer, dict):
        raise ResultError(f"{path}: the footer is missing, so the file is cut off; write it again with a new run")
    for name in counted:
        found = document.get(name)
        number = len(found) if isinstance(found, list) else 0
        if footer.get(name) != number:
            raise ResultError(
                f"{path}: holds {number} {name}, its footer says {footer.get(name)}: cut off or edited; "
                "write it again with a new run"
            )
    if footer.get("digest") != digest(document):
        raise ResultError(f"{path}: does not match its footer's digest: it was edited; write it again with a new run")
    return document
