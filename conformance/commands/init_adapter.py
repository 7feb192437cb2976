"""`fencepost init-adapter`: a copy of the skeleton under a name of one's own."""

from __future__ import annotations

import importlib.util
import inspect
import keyword
import re
from pathlib import Path

import click
from fencepost.adapters import skeleton


def write_adapter(name: str, asynchronous: bool) -> int:
    """Write `<name>.py` into the current folder, for a queue with plain or with async methods; returns the exit code.

    Raises:
        click.UsageError: the name cannot be used, or the file cannot be written; nothing was written.
    """
    file = Path(f"{_usable(name)}.py")
    made = _class_name(name)
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(adapter_text(name, made, asynchronous))
    except FileExistsError:
        raise click.UsageError(f"{file} is there already, and stays as it is; give another name") from None
    except OSError as error:
        raise click.UsageError(f"{file} cannot be written here ({error.strerror}); go to a folder of yours") from None
    click.echo(f"{file} is written. Ask now, and again after each method that you write, what is left to do:")
    click.echo(f"  fencepost smoke --adapter={name}:{made}")
    return 0


def adapter_text(name: str, made: str, asynchronous: bool) -> str:
    """The skeleton as module `name` with the adapter class `made`, its methods plain or async."""
    text = inspect.getsource(skeleton)
    for old, new in _AS_ASYNC if asynchronous else ():
        text = text.replace(old, new)
    if asynchronous:
        text = _METHOD.sub("    async def ", text)
    text = text.replace("what `fencepost init-adapter` writes.", "written by `fencepost init-adapter`.")
    return text.replace("Skeleton", made).replace("skeleton", name)


_METHOD = re.compile(r"^    def (?!__init__|actor\b)", re.MULTILINE)
_AS_ASYNC = (
    (
        "from fencepost.adapters.sync import AdapterError, Capabilities, QueueSpec, SyncActor, SyncAdapter, c, o\n",
        "from fencepost.adapters.contract import Actor, Adapter\n"
        "from fencepost.adapters.sync import AdapterError, Capabilities, QueueSpec, c, o\n",
    ),
    ("pass  # self.queue.connection.close()", "pass  # close the connection, and let the next verb open a new one"),
    ("SyncActor", "Actor"),
    ("SyncAdapter", "Adapter"),
    ("`hook_of(command)(ids)`", "`await HookRun(command.hook)(ids)`"),
    ("remove what `open` made; the actors are closed by then", "close the actors, and remove what `open` made"),
    (
        "    def actor(self, worker: int) -> Actor:\n        return SkeletonActor(worker)\n",
        "    def actor(self, worker: int) -> Actor:\n"
        "        if worker not in self.actors:\n"
        "            self.actors[worker] = SkeletonActor(worker)\n"
        "        return self.actors[worker]\n",
    ),
    (
        "    def open(self, queue",
        "    def __init__(self) -> None:\n"
        "        self.actors: dict[int, Actor] = {}  # a worker keeps its client until the adapter is closed\n\n"
        "    def open(self, queue",
    ),
)  # fmt: skip
"""What differs in the skeleton of a queue with async methods, beside its methods."""


def _usable(name: str) -> str:
    """The name, if a module of this name can be made here and imported from here."""
    bare = name.removesuffix(".py")
    if Path(bare).name != bare:
        raise click.UsageError(
            f"{name!r} names a folder; give the bare name of a module, from the folder that it is to lie in"
        )
    if not bare.isidentifier() or keyword.iskeyword(bare):
        near = re.sub(r"\W+", "_", bare).strip("_").lower()
        hint = f", such as {near!r}" if near.isidentifier() and not keyword.iskeyword(near) else ""
        raise click.UsageError(
            f"{name!r} cannot be imported as a module; give a name of letters, digits and underscores{hint}"
        )
    if bare != name:
        raise click.UsageError(f"{name!r}: give the name without '.py', as in `fencepost init-adapter {bare}`")
    if not Path(f"{name}.py").exists() and importlib.util.find_spec(name) is not None:
        raise click.UsageError(
            f"there is a module {name!r} already, which a file of that name would hide; give another name, "
            f"such as '{name}_adapter'"
        )
    return name


def _class_name(name: str) -> str:
    """`my_queue` makes `MyQueue`; a name that the skeleton uses otherwise makes `…Queue`."""
    made = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    if made in {"Actor", "Adapter", "Sync", *vars(skeleton)} - {"Skeleton"}:
        return f"{made}Queue"
    return made if made.isidentifier() else f"Queue{made}"
