"""YAML as fencepost's files use it: plain data only, every key once, no anchors or merges, decimal numbers.

It knows nothing of scenarios.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from .format import ScenarioError

_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """`SafeLoader` that refuses what hides meaning: duplicate keys, aliases, merges, and numbers that YAML 1.1 reads
    otherwise than people do, such as `010` and `1:30`.
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="aliases (*name) are not allowed; write it out", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    problem = f"key `{key.value}` stands twice; keep one"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
                seen.add(key.value)
            if key.tag == _MERGE:
                problem = "merges (<<) are not allowed; write it out"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
        return super().construct_mapping(node, deep)

    def construct_number(self, node: yaml.ScalarNode) -> int:
        if not _DECIMAL.fullmatch(node.value):
            problem = f"`{node.value}` is no plain decimal number; write it as one, or put it in quotes"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return int(node.value)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_number)


def read_yaml(text: str, name: str, starts: str = "a scenario starts with `fencepost: 1`") -> dict[str, Any]:
    """The mapping in this text; `starts` tells whoever gave something else how such a file begins.

    Raises:
        ScenarioError: the text is empty, damaged (with the line), or no mapping with words as keys.
    """
    try:
        raw = yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise ScenarioError(f"{name}{line}: {fault.problem or 'damaged YAML'}") from fault
    except (yaml.YAMLError, ValueError, RecursionError) as fault:
        raise ScenarioError(f"{name}: damaged YAML: {str(fault).splitlines()[0]}") from fault
    if raw is None:
        raise ScenarioError(f"{name}: is empty; {starts}")
    if not isinstance(raw, dict):
        raise ScenarioError(f"{name}: is not a mapping; {starts}")
    return raw
