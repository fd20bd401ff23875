# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Values of expressions in Python files of other projects.

No expression is run. An expression without a known value is `Unknown`.
"""

import ast
from collections.abc import Callable
import copy
import math
import operator
from typing import NamedTuple, TypeAlias


class Unknown(NamedTuple):
  """An expression without a value; `text` is its source."""
  text: str

  def __repr__(self) -> str:
    return self.text


# None, bool, numbers, texts, lists and dictionaries of these, `Unknown`.
Value: TypeAlias = object

_COPIES = ('dict', 'EasyDict')
_DEEP_COPIES = ('copy.deepcopy', 'deepcopy', 'copy.copy')
_NUMBERS: dict[str, Callable[[float], float]] = {'int': int, 'float': float}
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv}
_LARGEST_BASE, _LARGEST_EXPONENT = 1000, 20


class Evaluator:
  """Finds values of expressions from the values of names so far.

  Attributes:
    values: the values of names; the name of an argument is `args.NAME`.
  """

  def __init__(self) -> None:
    self.values: dict[str, Value] = {}

  def keywords(self, node: ast.Call) -> dict[str, Value]:
    """Returns the arguments of a call that have names, or are after `**`."""
    return self.merged([(word.arg, word.value) for word in node.keywords])

  def merged(self, items: list[tuple[str | None, ast.expr]]
             ) -> dict[str, Value]:
    """Returns a dictionary; the name None stands for `**`."""
    found: dict[str, Value] = {}
    for name, node in items:
      value = self.value(node)
      if name is not None:
        found[name] = value
      elif isinstance(value, dict):
        found |= value
      else:
        text = ast.unparse(node)
        found[f'**{text}'] = Unknown(text)
    return found

  def value(self, node: ast.expr) -> Value:
    """Returns the value of an expression, or `Unknown`."""
    unknown = Unknown(ast.unparse(node))
    if isinstance(node, ast.Constant):
      return node.value
    if isinstance(node, (ast.List, ast.Tuple)):
      return [self.value(x) for x in node.elts]
    if isinstance(node, ast.Dict):
      return self.merged([(str(self.value(key)) if key else None, value)
                          for key, value in zip(node.keys, node.values)])
    if isinstance(node, ast.Subscript):
      owner = self.value(node.value)
      return owner.get(str(self.value(node.slice)), unknown) if isinstance(
          owner, dict) else unknown
    if isinstance(node, ast.Name):
      return self.values.get(node.id, unknown)
    if isinstance(node, ast.Attribute):
      owner = self.value(node.value)
      if isinstance(owner, dict):
        return owner.get(node.attr, unknown)
      if self.may_be_arguments(node.value):
        return self.values.get(f'args.{node.attr}', unknown)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
      number = self.value(node.operand)
      return -number if isinstance(number, (int, float)) else unknown
    if isinstance(node, ast.BinOp):
      return self._sum(node, unknown)
    if isinstance(node, ast.Call):
      return self._call(node, unknown)
    return unknown

  def may_be_arguments(self, node: ast.expr) -> bool:
    """Whether a name may be that of the result of `parse_args`."""
    if not isinstance(node, ast.Name):
      return False
    value = self.values.get(node.id)
    return value is None or isinstance(value, Unknown) and (
        'arg' in f'{node.id} {value.text}'.lower())

  def _sum(self, node: ast.BinOp, unknown: Unknown) -> Value:
    left, right = self.value(node.left), self.value(node.right)
    if isinstance(node.op, ast.BitOr) and isinstance(left, dict):
      return self.merged([(None, node.left), (None, node.right)])
    if not (isinstance(left, (int, float)) and isinstance(right, (int, float))):
      return unknown
    if isinstance(node.op, ast.Pow) and (
        abs(left) <= _LARGEST_BASE and 0 <= right <= _LARGEST_EXPONENT):
      power = left ** right
      return unknown if isinstance(power, complex) else power
    try:
      result = _OPERATORS[type(node.op)](left, right)
      return result if math.isfinite(result) else unknown
    except (KeyError, ArithmeticError):
      return unknown

  def _call(self, node: ast.Call, unknown: Unknown) -> Value:
    name = ast.unparse(node.func)
    first = self.value(node.args[0]) if len(node.args) == 1 else None
    if name in _COPIES and (not node.args or isinstance(first, dict)):
      return (first if isinstance(first, dict) else {}) | self.keywords(node)
    if name in _DEEP_COPIES and isinstance(first, dict):
      return copy.deepcopy(first)
    if isinstance(node.func, ast.Attribute) and node.func.attr == 'copy':
      owner = self.value(node.func.value)
      return dict(owner) if isinstance(owner, dict) else unknown
    if name in _NUMBERS and isinstance(first, (int, float)):
      try:
        return _NUMBERS[name](first)
      except (ArithmeticError, ValueError):
        return unknown
    return unknown
