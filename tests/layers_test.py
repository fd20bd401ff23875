# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests that modules import only what lies below them.

`_LAYERS` is the plan of the house. A new module needs a place in it.
"""

import os
import pathlib
import subprocess
import sys

from absl.testing import absltest

_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT / 'benchmarks'))
import house

# The number of a layer and its wings, the lowest layer first. A wing is a
# folder or a module of the top folder. It imports only from wings in the lines
# above its own, and not from other wings in its line.
_LAYERS = (
    (0, 'errors'),
    (0, 'settings experience'),
    (0, 'processes scores'),
    (0, 'zoo'),
    (1, 'environments replay hooks'),
    (2, 'vtrace networks'),
    (2, 'losses'),
    (3, 'algorithms'),
    (4, 'acting learning'),
    (5, 'runs'),
    (6, 'modes'),
    (7, 'distributed'),
    (8, 'experiment'),
    (9, '__main__'),  # `python -m scalable_agent`.
    (9, 'config structs training'),  # Public paths of modules in wings.
    (9, 'compat'),
)
# Used by processes that step environments, by the driver of a cluster, and by
# commands that start others.
_WITHOUT_TENSORFLOW_TOO = frozenset(
    f'scalable_agent.{module}'
    for module in ('acting.shares', 'modes.suite', 'runs.logdirs',
                   'runs.reports'))
_PLACES = {wing: place for place, (_, wings) in enumerate(_LAYERS)
           for wing in wings.split()}
# On one machine. `compat.scalable_agent.experiment` starts the program, which
# adds a module, as `__main__` does; a suite's report groups runs by settings.
# The measurements of --num_actors=auto are made by actors.
_LONGEST_CHAIN = 12
# On a cluster: the chain goes through the driver and the learner's process.
_LONGEST_CHAIN_ON_A_CLUSTER = 15
_MAX_CALLS_TO_GRADIENT = 8
_MAX_ANYS = 37  # Of `Any` in types; lower the limit with the number.
_MAX_TOP_FOLDER = 8  # `__main__` must be there; --hook names `hooks`.
# Longer than the limit, each with the reason.
_LONG_FILES: dict[str, str] = {
    'scalable_agent.vtrace':
        'One formula for four kinds of input; a third is their documentation.',
}
_TENSORFLOW = {'tensorflow', 'tensorflow_probability', 'keras', 'tf_keras'}

_IMPORTS = house.imports(_ROOT)


def _wing(module):
  """Returns the wing of a module; '' for the package itself."""
  return (module.removeprefix('scalable_agent').removeprefix('.')
          .partition('.')[0])


def _without_tensorflow():
  """Returns the modules that must not import TensorFlow."""
  return [module for module in _IMPORTS if _wing(module) and (
      _LAYERS[_PLACES[_wing(module)]][0] <= 1
      or module in _WITHOUT_TENSORFLOW_TOO)]


def _imported_by(module):
  """Returns all that a module imports, each with the chain of imports."""
  ways = {module: (module,)}
  new = [module]
  while new:
    name = new.pop()
    # Python imports the packages around a module with it.
    around = name.rpartition('.')[0]
    for other in _IMPORTS.get(name, set()) | ({around} if around else set()):
      if other not in ways:
        ways[other] = ways[name] + (other,)
        new.append(other)
  return ways


class LayersTest(absltest.TestCase):

  def test_every_module_has_a_place(self):
    missing = {_wing(module) for module in _IMPORTS} - set(_PLACES) - {''}
    self.assertEmpty(
        missing, 'Give these modules a line in _LAYERS of tests/layers_test.py')

  def test_imports_go_down(self):
    wrong = []
    for module, imported in _IMPORTS.items():
      for other in sorted(imported & _IMPORTS.keys()):
        here, there = _wing(module), _wing(other)
        if here != there and there and (
            not here or _PLACES[there] >= _PLACES[here]):
          wrong.append(f'{module} imports {other}')
    self.assertEmpty(wrong, 'Only layers below may be imported')

  def test_no_cycles_and_no_long_chains(self):
    chain = house.longest_chain(_IMPORTS)
    self.assertLessEqual(
        len(chain), _LONGEST_CHAIN_ON_A_CLUSTER, ' -> '.join(chain))
    chain = house.longest_chain({
        module: {name for name in imported if _wing(name) != 'distributed'}
        for module, imported in _IMPORTS.items()
        if _wing(module) != 'distributed'})
    self.assertLessEqual(len(chain), _LONGEST_CHAIN, ' -> '.join(chain))

  def test_algorithms_share_their_base_only(self):
    family = 'scalable_agent.algorithms.'
    wrong = [
        f'{module} imports {other}' for module, imported in _IMPORTS.items()
        if module.startswith(family) for other in sorted(imported)
        if other.startswith(family) and other != family + 'base']
    self.assertEmpty(wrong)

  def test_environment_processes_need_no_tensorflow(self):
    wrong = []
    for module in _without_tensorflow():
      for name, way in _imported_by(module).items():
        if name in _TENSORFLOW:
          wrong.append(' -> '.join(way))
    self.assertEmpty(wrong, 'Layers 0 and 1 must not import TensorFlow')

  def test_python_finds_no_tensorflow_either(self):
    # Libraries of others could import it, too.
    modules = _without_tensorflow()
    self.assertContainsSubset(
        ['scalable_agent.experience.structs', 'scalable_agent.environments'],
        modules)
    code = (f'import {", ".join(modules)}, sys\n'
            f'print(*sorted({_TENSORFLOW!r} & set(sys.modules)))')
    run = subprocess.run(
        [sys.executable, '-c', code], cwd=_ROOT, text=True, check=True,
        stdout=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=str(_ROOT)))
    self.assertEqual(run.stdout.split(), [])

  def test_ray_is_in_one_place(self):
    self.assertEmpty(
        [module for module, imported in _IMPORTS.items()
         if 'ray' in imported and _wing(module) != 'distributed'])


class LimitsTest(absltest.TestCase):
  """Tests that files, functions and the top folder stay small."""

  def test_files(self):
    self.assertEmpty(house.long_files(_ROOT).keys() ^ _LONG_FILES.keys())

  def test_functions(self):
    self.assertEmpty({f.name for f in house.functions(_ROOT)
                      if f.lines > house.MAX_FUNCTION_LINES})

  def test_all_functions_have_types(self):
    self.assertEmpty(house.untyped_functions(_ROOT))

  def test_any(self):
    self.assertLessEqual(house.num_anys(_ROOT), _MAX_ANYS)

  def test_top_folder(self):
    self.assertLessEqual(len(house.top_folder(_ROOT)), _MAX_TOP_FOLDER)

  def test_way_to_the_gradient(self):
    # `docs_test` proves that the table is the way of a training.
    way = house.documented_way_to_the_gradient(_ROOT)
    self.assertLessEqual(len(way) - 1, _MAX_CALLS_TO_GRADIENT, way)


class HouseTest(absltest.TestCase):
  """Tests of `house.imports`, on which the tests above rely."""

  def _imports(self, **files):
    root = pathlib.Path(self.create_tempdir().full_path)
    files = {'experiment': '', 'scalable_agent/__init__': ''} | files
    for name, source in files.items():
      path = root / f'{name}.py'
      path.parent.mkdir(parents=True, exist_ok=True)
      path.write_text(source)
    return house.imports(root)

  def test_imports_are_found_in_all_their_forms(self):
    graph = self._imports(**{
        'scalable_agent/f': 'import os.path, scalable_agent.b.c as c',
        'scalable_agent/a': 'from scalable_agent import b\n'
                            'from scalable_agent.b.c import X\n',
        'scalable_agent/b/__init__': 'def f():\n  from . import c\n'
                                     'from .. import a',
        'scalable_agent/b/c': 'from .d import X\nif X:\n  import numpy as np\n',
        'scalable_agent/b/d': 'from tensorflow import keras',
        'scalable_agent/e': 'f("scalable_agent.a", "scalable_agent.e")'})
    self.assertEqual(graph['scalable_agent.f'],
                     {'os', 'scalable_agent.b.c'})
    self.assertEqual(graph['scalable_agent.a'],
                     {'scalable_agent.b', 'scalable_agent.b.c'})
    self.assertEqual(graph['scalable_agent.b'],
                     {'scalable_agent.b.c', 'scalable_agent.a'})
    self.assertEqual(graph['scalable_agent.b.c'],
                     {'scalable_agent.b.d', 'numpy'})
    self.assertEqual(graph['scalable_agent.b.d'], {'tensorflow'})
    self.assertEqual(graph['scalable_agent.e'], {'scalable_agent.a'})

  def test_a_cycle_is_named(self):
    graph = {'a': {'b'}, 'b': {'c'}, 'c': {'b'}}
    with self.assertRaisesRegex(ValueError, 'b -> c -> b'):
      house.longest_chain(graph)

  def test_longest_chain(self):
    graph = {'a': {'b', 'c', 'numpy'}, 'b': {'d'}, 'c': set(), 'd': set()}
    self.assertEqual(house.longest_chain(graph), ('a', 'b', 'd'))


if __name__ == '__main__':
  absltest.main()
