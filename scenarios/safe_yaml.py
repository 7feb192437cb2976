"""YAML as scenario files use it: plain data only, every key once, no anchors. It knows nothing of scenarios."""

from __future__ import annotations

from typing import Any

import yaml

from .format import ScenarioError


class _Loader(yaml.SafeLoader):
    """`SafeLoader` that refuses what hides meaning: duplicate keys and aliases."""

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
        return super().construct_mapping(node, deep)


def read_yaml(text: str, name: str) -> dict[str, Any]:
    """The mapping in this text.

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
        raise ScenarioError(f"{name}: is empty; a scenario starts with `fencepost: 1`")
    if not isinstance(raw, dict):
        raise ScenarioError(f"{name}: is not a mapping; a scenario starts with `fencepost: 1`")
    return raw
