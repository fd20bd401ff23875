# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Reads settings from Python files of other projects, without running a file.

Numbers, texts, lists, dictionaries (also `**`, `|`, `update` and copies),
`dict(...)`, `EasyDict(...)`, arithmetic, names and parts of dictionaries
assigned before, and arguments with a default in `add_argument` or
`set_defaults` have values. Every other expression is `Unknown`, also another
change of a dictionary. A value that depends on a condition, a loop or a
parameter is `Unknown`, too.
"""

import ast
from collections.abc import Mapping, Sequence
import copy
from typing import NamedTuple

from scalable_agent import errors
from scalable_agent.compat.expressions import Evaluator
from scalable_agent.compat.expressions import Unknown
from scalable_agent.compat.expressions import Value

# Methods that change a dictionary, besides `update`.
_CHANGES = ('clear', 'pop', 'popitem', 'setdefault')


class Call(NamedTuple):
  """A call in a file: the name of the function, and the arguments."""
  function: str
  arguments: dict[str, Value]
  positional: list[Value]

  def named(self, names: Sequence[str]) -> dict[str, Value]:
    """Returns all arguments by name; `names` has the order of the function.

    Other positional arguments, also after `*`, are `argument 3 of function`.
    """
    found: dict[str, Value] = {}
    for i, value in enumerate(self.positional):
      if isinstance(value, Unknown) and value.text.startswith('*'):
        names = ()
      found[names[i] if i < len(names) else
            f'argument {i + 1} of {self.function}'] = value
    return found | self.arguments


class File(NamedTuple):
  """The values that names have at the end of a file, and all calls."""
  values: dict[str, Value]
  calls: list[Call]


def read(path: str) -> File:
  """Reads a file; ConfigError if the file is no Python file."""
  try:
    with open(path, 'rb') as f:  # Python knows marks and lines of the coding.
      tree = ast.parse(f.read())
    reader = _Reader()
    for _ in range(2):  # A function may use what a later function sets.
      reader.calls.clear()
      reader.visit(tree)
  except OSError as e:
    raise errors.ConfigError(f'{path} cannot be read: {e.strerror}.') from e
  except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
    raise errors.ConfigError(f'{path} is not a Python file.') from e
  return File(reader.values, reader.calls)


def flat(value: Value, prefix: str = '') -> dict[str, Value]:
  """Returns the values of nested dictionaries by names such as `a.b.c`."""
  if not isinstance(value, Mapping):
    return {prefix: value}
  found: dict[str, Value] = {}
  for name, part in value.items():
    found |= flat(part, f'{prefix}.{name}' if prefix else str(name))
  return found


class _Reader(Evaluator, ast.NodeVisitor):
  """Finds assignments and calls, in the order of the file."""

  def __init__(self) -> None:
    super().__init__()
    self.calls: list[Call] = []

  def visit_Assign(self, node: ast.Assign) -> None:
    """Keeps the value of names, and of parts of known dictionaries."""
    for target in node.targets:
      self._set(target, self.value(node.value))
    self.generic_visit(node)

  def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
    """As `visit_Assign`, with a type."""
    if node.value is not None:
      self._set(node.target, self.value(node.value))
    self.generic_visit(node)

  def visit_AugAssign(self, node: ast.AugAssign) -> None:
    """Keeps the new value, such as that of `name |= {...}`."""
    value = self.value(ast.BinOp(node.target, node.op, node.value))
    self._set(node.target, Unknown(ast.unparse(node)) if isinstance(
        value, Unknown) else value)
    self.generic_visit(node)

  def visit_Delete(self, node: ast.Delete) -> None:
    """Keeps that a part of a dictionary has no known value any more."""
    for target in node.targets:
      if not isinstance(target, ast.Name):
        self._set(target, Unknown(ast.unparse(node)))

  def visit_If(self, node: ast.If) -> None:
    """Takes the branch of a known condition; else joins both."""
    condition = (ast.unparse(node.test) == "__name__ == '__main__'"
                 or self.value(node.test))
    if isinstance(condition, bool):
      self._visit_all(node.body if condition else node.orelse)
    else:
      self._join(node, node.body, node.orelse)

  def visit_For(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
    """Joins a pass through the body with none."""
    if not isinstance(node, ast.While):
      self._set(node.target, Unknown(ast.unparse(node.target)))
    self._join(node, node.body, [])
    self._visit_all(node.orelse)

  visit_AsyncFor = visit_While = visit_For

  def visit_Try(self, node: ast.Try) -> None:
    """Joins the body with all handlers of errors."""
    self._join(node, [*node.body, *node.orelse],
               *(handler.body for handler in node.handlers))
    self._visit_all(node.finalbody)

  def visit_Match(self, node: ast.Match) -> None:
    """Joins all cases."""
    self._join(node, *(case.body for case in node.cases), [])

  def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef
                        | ast.ClassDef) -> None:
    """Keeps the values that names of the file have outside of the body.

    Parameters hide names of the file, but not those of known dictionaries. A
    local name that the file does not have stays, with the value of the first
    function. Methods also see the names of their class.
    """
    parameters = set() if isinstance(node, ast.ClassDef) else {
        x.arg for x in ast.walk(node.args) if isinstance(x, ast.arg)}
    hidden = {name for name in parameters
              if not isinstance(self.values.get(name, {}), dict)}
    own = hidden | _assigned(node)
    kept = {x: self.values[x] for x in own if x in self.values}
    for name in hidden:
      del self.values[name]
    self.generic_visit(node)
    self.values |= kept

  visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

  def _visit_all(self, nodes: Sequence[ast.stmt]) -> None:
    for node in nodes:
      self.visit(node)

  def _join(self, node: ast.stmt, *branches: Sequence[ast.stmt]) -> None:
    """Visits branches; values that differ at their ends become `Unknown`.

    A value of a name that only some branches set stays: after the others, the
    file cannot use the name.
    """
    before, ends = self.values, []
    for branch in branches:
      self.values = copy.deepcopy(before)
      self._visit_all(branch)
      ends.append(self.values)
    self.values, *others = ends
    for other in others:
      self.values = {**other, **self.values}
      _mark(self.values, {**self.values, **other}, Unknown(
          f'set by "{ast.unparse(node).splitlines()[0].rstrip(":")}"'))

  def _set(self, target: ast.expr, value: Value) -> None:
    if isinstance(target, ast.Name):
      self.values[target.id] = value
    elif isinstance(target, (ast.Tuple, ast.List)):
      parts = value if isinstance(value, list) and len(value) == len(
          target.elts) else [Unknown(ast.unparse(x)) for x in target.elts]
      for part, x in zip(target.elts, parts):
        self._set(part, x)
    elif isinstance(target, ast.Starred):
      self._set(target.value, Unknown(ast.unparse(target)))
    elif isinstance(target, (ast.Subscript, ast.Attribute)):
      self._set_part(target, value)

  def _set_part(self, target: ast.Subscript | ast.Attribute,
                value: Value) -> None:
    """Sets `name['a'].b` if `name` is a known dictionary."""
    keys: list[Value] = []
    owner: ast.expr = target
    while isinstance(owner, (ast.Subscript, ast.Attribute)):
      keys.insert(0, self.value(owner.slice) if isinstance(
          owner, ast.Subscript) else owner.attr)
      owner = owner.value
    part = self.values.get(owner.id) if isinstance(owner, ast.Name) else None
    if not isinstance(part, dict):
      name = '.'.join(['args', *map(str, keys)])
      if name in self.values and self.may_be_arguments(owner):
        self.values[name] = value
      return
    for key in keys[:-1]:
      inner = part.setdefault(str(key), {})
      if not isinstance(inner, dict):
        part[str(key)] = Unknown(ast.unparse(target))
        return
      part = inner
    is_unknown = isinstance(keys[-1], Unknown)
    part[str(keys[-1])] = (Unknown(ast.unparse(target)) if is_unknown
                           else copy.deepcopy(value))

  def visit_Call(self, node: ast.Call) -> None:
    """Keeps calls, defaults of arguments, and changes of dictionaries."""
    arguments = self.keywords(node)
    if isinstance(node.func, ast.Attribute):
      self._change(node, node.func, arguments)
    function = ast.unparse(node.func)
    if function.endswith('.add_argument'):
      for name in map(self.value, node.args):
        if isinstance(name, str) and 'default' in arguments:
          name = name.lstrip('-').replace('-', '_')
          self.values[f'args.{name}'] = arguments['default']
    elif function.endswith('.set_defaults'):
      self._set_defaults(arguments)
    self.calls.append(Call(
        function, arguments, [self.value(x) for x in node.args]))
    self.generic_visit(node)

  def _set_defaults(self, arguments: dict[str, Value]) -> None:
    """Sets values of `parse_args`; `**` of unknown values may set all."""
    for name, value in arguments.items():
      names = [f'args.{name}'] if not name.startswith('**') else [
          x for x in self.values if x.startswith('args.')]
      self.values |= dict.fromkeys(names, value)

  def _change(self, node: ast.Call, method: ast.Attribute,
              arguments: dict[str, Value]) -> None:
    """Changes a known dictionary as the call of its method does."""
    owner = self.value(method.value)
    if not isinstance(owner, dict):
      return
    if method.attr == 'update':
      owner |= self.merged([(None, x) for x in node.args]) | arguments
    elif method.attr in _CHANGES:
      owner[f'**{ast.unparse(node)}'] = Unknown(ast.unparse(node))


def _assigned(node: ast.stmt) -> set[str]:
  """Returns the names that a body assigns to, without those of outer scopes."""
  own, outer, nodes = set(), set(), [*ast.iter_child_nodes(node)]
  while nodes:
    part = nodes.pop()
    if isinstance(part, (ast.Global, ast.Nonlocal)):
      outer.update(part.names)
    elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
      own.add(part.id)
    if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef,
                             ast.ClassDef)):  # These have their own visit.
      nodes += ast.iter_child_nodes(part)
  return own - outer


def _mark(one: dict[str, Value], other: dict[str, Value],
          unknown: Unknown) -> None:
  """Makes values of `one` that differ in `other` unknown, also of parts."""
  for name in one | other:
    value, found = one.get(name, unknown), other.get(name, unknown)
    if isinstance(value, dict) and isinstance(found, dict):
      _mark(value, found, unknown)
    elif value != found or name not in one or name not in other:
      one[name] = unknown
