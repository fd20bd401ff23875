# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Measures the structure of the code, of one checkout or of several.

  python benchmarks/house.py [--trace] [--time] [DIRECTORY ...]

Prints a table in Markdown with a column per directory (default: this one).
`--trace` trains there until the first tape is made and counts the calls of
the program's functions from main to the tape; `--time` runs `make check` and
`make test` there. Times that were measured before are given with `--check_s`
and `--test_s`.
"""

import argparse
import ast
from collections.abc import Iterator
import functools
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import tokenize
from typing import NamedTuple

MAX_FILE_LINES = 350
MAX_FUNCTION_LINES = 60

_ROOT = pathlib.Path(__file__).resolve().parent.parent

# Prints the functions of the program that are entered when the first tape is
# made. The graph is traced in the thread of the call and below the call.
_TRACE = """
import glob, os, sys, traceback
sys.path.insert(0, os.getcwd())
import tensorflow as tf
files = {os.path.realpath(name) for name in glob.glob(
    'scalable_agent/**/*.py', recursive=True)}

def make(self, *args, **kwargs):
  names = []
  for frame in traceback.extract_stack():
    if os.path.realpath(frame.filename) in files:
      names.append(frame.name)
  print('TRACE', *names, flush=True)
  os._exit(0)

tf.GradientTape.__init__ = make
from scalable_agent import experiment
from absl import app
app.run(experiment.main)
"""
_TRACE_FLAGS = (
    '--level_name=catch', '--agent=mlp', '--num_action_repeats=1',
    '--num_actors=2', '--batch_size=2', '--unroll_length=5', '--nouse_lstm',
    '--xla=none')


class Function(NamedTuple):
  """A function of the program; `lines` without its docstring."""
  module: str
  name: str
  lines: int
  lines_with_docstring: int


_WITH_DOCSTRING = (
    ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Text(NamedTuple):
  """A docstring, a help text, or the comment of one line or of several."""
  line: int
  text: str


# Words that stand for a noun, which the reader must look for.
_PRONOUNS = frozenset(
    'it they them those these ones others what who whose'.split())


def modules(root: pathlib.Path) -> dict[str, pathlib.Path]:
  """Returns the files of the package by their module names."""
  files = {}
  for path in sorted((root / 'scalable_agent').rglob('*.py')):
    parts = path.relative_to(root).with_suffix('').parts
    files['.'.join(parts[:-1] if parts[-1] == '__init__' else parts)] = path
  return files


@functools.cache
def parse(path: pathlib.Path) -> ast.Module:
  return ast.parse(path.read_text(encoding='utf-8'), filename=str(path))


def _names(node: ast.Import | ast.ImportFrom, module: str,
           is_package: bool) -> Iterator[str]:
  """Yields the imports of one statement: modules, or names in modules."""
  if isinstance(node, ast.Import):
    yield from (alias.name for alias in node.names)
    return
  package = module.split('.')
  if node.level:
    package = package[:len(package) - node.level + is_package]
    base = '.'.join(package + ([node.module] if node.module else []))
  else:
    base = node.module or ''
  yield from (f'{base}.{alias.name}' for alias in node.names)


def imports(root: pathlib.Path) -> dict[str, set[str]]:
  """Returns the imports of each module, at any place in the module.

  A string that is the name of a module of ours counts as an import, because
  `importlib` imports by such names.

  Args:
    root: the directory of a checkout.

  Returns:
    For each module, the modules of ours by their full names, other modules by
    the first part of their names ('tensorflow').
  """
  files = modules(root)
  graph: dict[str, set[str]] = {module: set() for module in files}
  for module, path in files.items():
    for node in ast.walk(parse(path)):
      if isinstance(node, (ast.Import, ast.ImportFrom)):
        for name in _names(node, module, path.name == '__init__.py'):
          if name not in files and name.rpartition('.')[0] in files:
            name = name.rpartition('.')[0]
          graph[module].add(name if name in files else name.split('.')[0])
      elif isinstance(node, ast.Constant) and node.value in files:
        graph[module].add(str(node.value))
    graph[module].discard(module)
  return graph


def longest_chain(graph: dict[str, set[str]]) -> tuple[str, ...]:
  """Returns the longest chain of imports; ValueError if there is a cycle."""
  chains: dict[str, tuple[str, ...]] = {}

  def chain(module, above):
    if module in above:
      cycle = above[above.index(module):] + (module,)
      raise ValueError(f'Imports go round: {" -> ".join(cycle)}')
    if module not in chains:
      below = [chain(m, above + (module,))
               for m in sorted(graph[module]) if m in graph]
      chains[module] = (module,) + max(below, key=len, default=())
    return chains[module]

  return max((chain(module, ()) for module in graph), key=len)


def _num_lines(node: ast.stmt) -> int:
  return (node.end_lineno or 0) - node.lineno + 1


def functions(root: pathlib.Path) -> list[Function]:
  """Returns all functions of the program, the longest first."""
  found = []
  for module, path in modules(root).items():
    for node in ast.walk(parse(path)):
      if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        lines = _num_lines(node)
        docstring = _num_lines(node.body[0]) if ast.get_docstring(node) else 0
        found.append(Function(module, node.name, lines - docstring, lines))
  return sorted(found, key=lambda function: -function.lines)


def _is_help(call: ast.Call) -> bool:
  """Returns whether this declares a setting, whose second argument is help."""
  return (isinstance(call.func, ast.Name) and call.func.id == 'setting'
          and len(call.args) > 1)


def texts(path: pathlib.Path) -> list[Text]:
  """Returns the docstrings, helps and comments of a file, by line.

  White space is folded. The line of the license is left out.
  """
  found = []
  for node in ast.walk(parse(path)):
    if isinstance(node, _WITH_DOCSTRING):
      if docstring := ast.get_docstring(node):
        found.append(Text(node.body[0].lineno, docstring))
    elif isinstance(node, ast.Call):
      helps = [keyword.value for keyword in node.keywords
               if keyword.arg == 'help'] + node.args[1:2] * _is_help(node)
      found += [Text(node.lineno, help_text.value) for help_text in helps
                if isinstance(help_text, ast.Constant)]
  comments: list[tuple[int, int, str]] = []  # Last line, column, text.
  starts = []
  with open(path, 'rb') as f:
    for token in tokenize.tokenize(f.readline):
      if token.type != tokenize.COMMENT or 'Copyright' in token.string:
        continue
      line, column = token.start
      text = token.string.lstrip('# ')
      if (comments and comments[-1][:2] == (line - 1, column)
          and token.line.lstrip().startswith('#')):
        comments[-1] = line, column, f'{comments[-1][2]} {text}'
      else:
        comments.append((line, column, text))
        starts.append(line)
  found += [Text(line, text)
            for line, (_, _, text) in zip(starts, comments)
            if not text.startswith(('noqa', 'type:'))]
  return sorted(Text(line, ' '.join(text.split())) for line, text in found)


def pronouns(found: list[Text]) -> tuple[list[Text], int]:
  """Returns the pronouns of texts, with their lines, and the number of words.

  Code in backquotes counts as a word.
  """
  words = [Text(line, word.lower()) for line, text in found
           for word in re.findall(r"`[^`]*`|[\w'-]+", text)]
  return [word for word in words if word.text in _PRONOUNS], len(words)


def num_anys(root: pathlib.Path) -> int:
  """Returns how often `Any` is in the package, without its imports."""
  return sum(
      isinstance(node, ast.Name) and node.id == 'Any'
      or isinstance(node, ast.Attribute) and node.attr == 'Any'
      for path in modules(root).values()
      for node in ast.walk(parse(path)))


def way_to_the_gradient(root: pathlib.Path) -> list[str]:
  """Trains in `root`; returns the functions from `main` to the first tape."""
  with tempfile.TemporaryDirectory() as logdir:
    run = subprocess.run(
        [sys.executable, '-c', _TRACE, *_TRACE_FLAGS, f'--logdir={logdir}'],
        cwd=root, text=True, capture_output=True, check=False)
  for line in run.stdout.splitlines():
    if line.startswith('TRACE '):
      return line.split()[1:]
  raise RuntimeError(f'No gradient in {root}:\n{run.stdout}{run.stderr}')


def documented_way_to_the_gradient(root: pathlib.Path) -> list[str]:
  """Returns the functions of the table in docs/architecture.md."""
  text = (root / 'docs' / 'architecture.md').read_text('utf-8')
  table = text.partition('<!-- path -->')[2].partition('<!--')[0]
  return re.findall(r'^\| `(\w+)` \|', table, re.M)


def docstring_share(root: pathlib.Path) -> float:
  """Returns the share of the package's lines that are docstrings."""
  num_lines = num_docstring_lines = 0
  for path in modules(root).values():
    num_lines += _length(path)
    num_docstring_lines += sum(
        _num_lines(node.body[0]) for node in ast.walk(parse(path))
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node))
  return num_docstring_lines / num_lines


def pronoun_share(root: pathlib.Path) -> float:
  """Returns the share of pronouns among the words of docstrings and helps."""
  counts = [pronouns(texts(path)) for path in modules(root).values()]
  return (sum(len(found) for found, _ in counts)
          / sum(num_words for _, num_words in counts))


def untyped_functions(root: pathlib.Path) -> list[str]:
  """Returns the functions that lack the type of an argument or of the result.

  A method needs no type for its first argument, `__init__` none for its result
  if an argument has a type.
  """
  found = []
  for module, path in modules(root).items():
    for node in ast.walk(parse(path)):
      if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        a = node.args
        args = [*a.posonlyargs, *a.args, *a.kwonlyargs,
                *filter(None, (a.vararg, a.kwarg))]
        if args and args[0].arg in ('self', 'cls'):
          args = args[1:]
        untyped = [arg for arg in args if arg.annotation is None]
        needs_result = node.name != '__init__' or not args
        if untyped or (node.returns is None and needs_result):
          found.append(f'{module}.{node.name}')
  return found


def long_files(root: pathlib.Path) -> dict[str, int]:
  """Returns the lengths of the modules that are longer than the limit."""
  lengths = {module: _length(path) for module, path in modules(root).items()}
  return {module: length for module, length in lengths.items()
          if length > MAX_FILE_LINES}


def top_folder(root: pathlib.Path) -> list[str]:
  """Returns the modules of the top folder, without `__init__`."""
  return [module.removeprefix('scalable_agent.')
          for module, path in modules(root).items()
          if path.parent == root / 'scalable_agent'
          and path.name != '__init__.py']


def _length(path: pathlib.Path) -> int:
  return len(path.read_text(encoding='utf-8').splitlines())


def _seconds(root: pathlib.Path, target: str) -> float:
  start = time.monotonic()
  subprocess.run(['make', target], cwd=root, check=True, stdout=sys.stderr)
  return time.monotonic() - start


def _size(paths: list[pathlib.Path]) -> str:
  lines = sum(map(_length, paths))
  return f'{len(paths)} files, {lines:,} lines'


def measures(root: pathlib.Path) -> dict[str, str]:
  """Returns the measurements of the files of a checkout."""
  longest, *_ = found = functions(root)
  longest_with = max(found, key=lambda f: f.lines_with_docstring)
  chain = longest_chain(imports(root))
  return {
      'program': _size(list(modules(root).values())),
      'tests': _size(list((root / 'tests').rglob('*.py'))),
      'benchmarks': _size(list((root / 'benchmarks').rglob('*.py'))),
      'longest function':
          f'{longest.lines} lines, `{longest.module}.{longest.name}`',
      'longest function, docstring included':
          f'{longest_with.lines_with_docstring} lines, '
          f'`{longest_with.module}.{longest_with.name}`',
      'functions of more than 40 lines': str(sum(f.lines > 40 for f in found)),
      f'functions of more than {MAX_FUNCTION_LINES} lines':
          str(sum(f.lines > MAX_FUNCTION_LINES for f in found)),
      f'files of more than {MAX_FILE_LINES} lines':
          str(len(long_files(root))),
      'modules in the top folder': str(len(top_folder(root))),
      'docstrings': f'{100 * docstring_share(root):.0f} % of lines',
      'pronouns in docstrings, helps, comments':
          f'{100 * pronoun_share(root):.2f} per 100 words',
      'functions without all types': str(len(untyped_functions(root))),
      'median function':
          f'{statistics.median(f.lines for f in found):.0f} lines',
      'longest chain of imports': f'{len(chain)}: ' + ', '.join(
          module.removeprefix('scalable_agent.') for module in chain),
      '`Any`': str(num_anys(root)),
  }


def main() -> None:
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('directories', nargs='*', type=pathlib.Path,
                      metavar='DIRECTORY')
  parser.add_argument('--trace', action='store_true')
  parser.add_argument('--time', action='store_true')
  for name in ('check', 'test'):
    parser.add_argument(f'--{name}_s', type=float, nargs='*', metavar='S',
                        help=f'seconds of make {name}, one per directory')
  args = parser.parse_args()
  roots = [path.resolve() for path in args.directories or [_ROOT]]
  columns = []
  for i, root in enumerate(roots):
    column = measures(root)
    if args.trace:
      way = way_to_the_gradient(root)
      column['calls from main to the gradient'] = (
          f'{len(way) - 1}: ' + ', '.join(way))
    for name, given in (('check', args.check_s), ('test', args.test_s)):
      if given or args.time:
        seconds = given[i] if given else _seconds(root, name)
        column[f'`make {name}`'] = f'{seconds:.0f} s'
    columns.append(column)
  print('| | ' + ' | '.join(root.name for root in roots) + ' |')
  print('|---' * (len(roots) + 1) + '|')
  for name in columns[0]:
    print(f'| {name} | ' + ' | '.join(column[name] for column in columns)
          + ' |')


if __name__ == '__main__':
  main()
