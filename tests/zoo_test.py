# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests of the agents that come with the package, and of their cards."""

import contextlib
import dataclasses
import io
import os
import pathlib
import re
import shutil
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import in_process
import numpy as np
import pytest
import scalable_agent
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent import zoo
from scalable_agent.runs import checkpointing
from scalable_agent.runs import weights
from scalable_agent.scores import table
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_ROOT = pathlib.Path(__file__).resolve().parent.parent

_MAX_BYTES = 25e6
# Agents whose games take little time, and need no further package.
_CHEAP = ('cartpole', 'catch', 'memory', 'pattern', 'pendulum')
_NAMES = zoo.names()
_FILES = {'agent.json', 'card.json', 'settings.json', 'spec.json',
          'weights.npz'}


def _trained(name):
  return config_lib.trained_with(zoo.folder(f'zoo:{name}'))


class CardsTest(parameterized.TestCase):

  def test_there_are_agents_and_they_are_small(self):
    self.assertContainsSubset(['catch'], _NAMES)
    folders = [_ROOT / 'scalable_agent' / 'zoo' / name for name in _NAMES]
    for folder in folders:
      self.assertEqual({file.name for file in folder.iterdir()}, _FILES)
    self.assertLess(sum(file.stat().st_size for folder in folders
                        for file in folder.iterdir()), _MAX_BYTES)

  @parameterized.parameters(_NAMES)
  def test_the_score_is_that_of_the_games(self, name):
    card = zoo.card(name)
    self.assertGreaterEqual(len(card.returns), table.MIN_GAMES)
    row = table.make_row(card.level, card.returns)
    self.assertEqual((card.mean, card.low, card.high),
                     (row.mean, *row.interval))

  @parameterized.parameters(_NAMES)
  def test_the_command_has_the_settings(self, name):
    card, trained = zoo.card(name), _trained(name)
    program, file, *flags = card.command.split()
    self.assertEqual((program, file), ('python', 'experiment.py'))
    asked = experiment.parse(flags)
    self.assertEqual(asked.logdir, f'/tmp/{name}')
    # The seconds between checkpoints change nothing that is learned.
    self.assertEqual(dataclasses.replace(
        asked, test_greedy=card.greedy, video_num_episodes=1,
        save_checkpoint_secs=trained.save_checkpoint_secs), trained)
    self.assertEqual((card.level, card.algorithm, card.seed),
                     (trained.level_name, trained.algorithm, trained.seed))

  @parameterized.parameters(sorted(set(_CHEAP) & set(_NAMES)))
  def test_cheap_agents_play_for_their_score(self, name):
    self._check_score(name, 20)

  @pytest.mark.storm
  def test_agents_play_for_their_score(self):
    for name in sorted(set(_NAMES) - set(_CHEAP)):
      with self.subTest(name):
        self._check_score(name, table.MIN_GAMES)

  def _check_score(self, name, num_episodes):
    """Compares the intervals: that of new games, and that of the card."""
    card, agent = zoo.card(name), scalable_agent.load(f'zoo:{name}')
    self.assertEqual(agent.num_env_frames, card.num_env_frames)
    low, high = table.make_row(
        card.level, agent.play(num_episodes=num_episodes)).interval
    self.assertLessEqual(low, card.high)
    self.assertGreaterEqual(high, card.low)


class CopyTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    directory = self.create_tempdir().full_path
    before = os.getcwd()
    os.chdir(directory)
    self.addCleanup(os.chdir, before)
    self.output = io.StringIO()
    self.enter_context(contextlib.redirect_stdout(self.output))

  def test_files_are_written_to_a_copy_only(self):
    folder = pathlib.Path(zoo.folder('zoo:catch'))
    before = {file: file.read_bytes() for file in folder.iterdir()}
    config = experiment.parse(['--mode=test', '--logdir=zoo:catch',
                               '--test_num_episodes=1'])
    self.assertEqual(config.level_name, 'catch')
    for _ in range(2):  # The second copy replaces the first one.
      run = experiment.import_mode(config)
      run(dataclasses.replace(config, logdir=zoo.copy(config.logdir)))
    self.assertEqual(
        {file: file.read_bytes() for file in folder.iterdir()}, before)
    self.assertContainsSubset(
        _FILES | {'scores-100000-2.csv'}, set(os.listdir('zoo_catch')))
    self.assertIn(f'zoo:catch is copied to {os.getcwd()}/zoo_catch, where all '
                  'files are written.', self.output.getvalue())

  @pytest.mark.storm
  def test_a_film_of_an_agent_that_normalises_observations(self):
    code, output = in_process.main(
        '--mode=video', '--logdir=zoo:pong', '--video_num_episodes=1')
    self.assertEqual(code, 0, output)
    # Without its statistics, the agent loses by 21 points.
    self.assertGreater(
        float(re.search(r'the best game, return ([-0-9.]+)\.', output)[1]), 0)

  def test_a_copy_cannot_be_trained_further(self):
    directory = zoo.copy('zoo:catch')
    with self.assertRaisesRegex(
        errors.CheckpointError, '--logdir=zoo_catch has an agent of the zoo, '
        'without optimizer: training cannot resume. Use another --logdir.'):
      checkpointing.Checkpointer(
          directory, mock.Mock(state={}), 'an agent', 'catch')

  def test_other_directories_are_left_alone(self):
    self.assertEqual(zoo.copy('/tmp/x'), '/tmp/x')
    self.assertEqual(zoo.folder('/tmp/x'), '/tmp/x')
    os.mkdir('zoo_catch')
    with self.assertRaisesRegex(
        errors.ConfigError, 'zoo_catch is not a copy of zoo:catch: move '):
      zoo.copy('zoo:catch')

  def test_a_copy_of_a_read_only_package(self):
    package = self.create_tempdir().full_path
    source = os.path.join(package, 'catch')
    shutil.copytree(zoo.folder('zoo:catch'), source)
    for file in os.listdir(source):
      os.chmod(os.path.join(source, file), 0o444)
    os.chmod(source, 0o555)
    self.addCleanup(os.chmod, source, 0o755)
    with mock.patch.object(zoo, '_DIRECTORY', package):
      target = pathlib.Path(zoo.copy('zoo:catch'))
    for path in target, *target.iterdir():
      self.assertTrue(path.stat().st_mode & 0o200, path)

  def test_a_copy_that_was_cut_off_is_made_again(self):
    copyfile = shutil.copyfile
    with mock.patch('shutil.copyfile') as copy:
      copy.side_effect = lambda *paths: (
          copyfile(*paths) if copy.call_count == 1 else self._interrupt())
      with self.assertRaises(KeyboardInterrupt):
        zoo.copy('zoo:catch')
    self.assertEqual(set(os.listdir(zoo.copy('zoo:catch'))), _FILES)

  def test_other_programs_see_whole_files_only(self):
    path, seen = pathlib.Path('zoo_catch', 'weights.npz'), []

    def copy(source, target):
      pathlib.Path(target).write_bytes(b'half')
      seen.append(path.read_bytes() if path.parent.exists() else None)
      return copyfile(source, target)

    copyfile = shutil.copyfile
    with mock.patch('shutil.copyfile', copy):
      zoo.copy('zoo:catch')
      self.assertEqual({*seen}, {None})
      whole, seen[:] = path.read_bytes(), []
      path.write_bytes(whole[:99])  # Of an older version.
      zoo.copy('zoo:catch')
    self.assertEqual({*seen}, {whole[:99]})
    self.assertEqual(path.read_bytes(), whole)
    with mock.patch.object(os, 'replace') as replace:
      zoo.copy('zoo:catch')
    replace.assert_not_called()  # Equal files stay.
    self.assertEqual(os.listdir(), ['zoo_catch'])

  def _interrupt(self):
    raise KeyboardInterrupt

  def test_a_read_only_directory(self):
    with mock.patch('shutil.copyfile', side_effect=PermissionError(
        13, 'Permission denied')):
      with self.assertRaisesRegex(
          errors.ConfigError, 'zoo_catch cannot be written: Permission denied. '
          'Start the program in a directory'):
        zoo.copy('zoo:catch')

  def test_the_list(self):
    self.assertEqual(zoo.run(experiment.parse(['--mode=zoo'])), 0)
    lines = self.output.getvalue().splitlines()
    for name in _NAMES:
      [line] = [line for line in lines if line.startswith(f'| zoo:{name} ')]
      card = zoo.card(name)
      for text in (card.level, f'{card.mean:,.2f}',
                   f'{card.low:,.2f} to {card.high:,.2f}',
                   f'{card.num_env_frames:,}'):
        self.assertIn(f' {text} |', line)


class WeightsTest(absltest.TestCase):

  def _agent(self, *arrays):
    """An agent whose variables have the path `layer_N/kernel`."""
    return mock.Mock(variables=[
        self._variable(array, f'layer_{i}') for i, array in enumerate(arrays)])

  def _variable(self, array, layer):
    with tf.keras.name_scope(layer):
      return tf.keras.Variable(array, name='kernel', dtype=array.dtype)

  def test_matrices_are_rounded_and_other_arrays_are_not(self):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=[30, 20]).astype(np.float32),
              rng.normal(size=[20]).astype(np.float32),
              np.array([[1e5, 1 / 3]], np.float32),  # Infinite as float16.
              np.array([[70_001]], np.int64)]
    logdir = self.create_tempdir().full_path
    weights.save(logdir, self._agent(*arrays), 12)
    agent = self._agent(*map(np.zeros_like, arrays))
    self.assertEqual(weights.restore(logdir, agent), 12)
    first, *others = [variable.numpy() for variable in agent.variables]
    np.testing.assert_array_equal(
        first, arrays[0].astype(np.float16).astype(np.float32))
    np.testing.assert_allclose(first, arrays[0], rtol=2**-11, atol=2**-25)
    for result, expected in zip(others, arrays[1:], strict=True):
      np.testing.assert_array_equal(result, expected)

  def test_weights_are_found_by_name(self):
    """Whatever the order of variables, and the numbers of Keras, are."""
    logdir = self.create_tempdir().full_path
    make = lambda **values: mock.Mock(variables=[
        self._variable(np.full([2], value, np.float32), layer)
        for layer, value in values.items()])
    weights.save(logdir, make(dense=1, dense_1=2, lstm=3), 12)
    agent = make(lstm_4=0, dense_10=0, dense_9=0)
    weights.restore(logdir, agent)
    self.assertEqual([variable.numpy()[0] for variable in agent.variables],
                     [3, 2, 1])
    for other in (make(dense=0, dense_1=0, gru=0), make(dense=0, lstm=0),
                  make(dense=0, dense_1=0, dense_2=0, lstm=0)):
      with self.assertRaisesRegex(
          errors.CheckpointError, 'The names of the weights are not those'):
        weights.restore(logdir, other)

  def test_files_that_do_not_fit(self):
    logdir = self.create_tempdir().full_path
    ours = np.zeros([2, 3], np.float32)
    weights.save(logdir, self._agent(ours), 12)
    for other in ([ours[:1]], [ours, ours]):
      with self.assertRaisesRegex(
          errors.CheckpointError, 'weights.npz does not fit this agent'):
        weights.restore(logdir, self._agent(*other))
    path = pathlib.Path(weights.path(logdir))
    whole = path.read_bytes()
    name = b'layer/kernel 0.npy'
    start = whole.index(name) + len(name) + 20  # Of the numbers.
    for damaged in (
        whole[:len(whole) // 2], b'', whole[:start] + b'\xff' * 30 +
        whole[start + 30:]):
      path.write_bytes(damaged)
      with self.assertRaises(errors.CheckpointError):
        weights.restore(logdir, self._agent(ours))


class MakeTest(absltest.TestCase):

  def test_an_agent_is_made_from_a_log_directory(self):
    sys.path.insert(0, str(_ROOT / 'benchmarks'))
    import zoo as make_zoo
    source = self.create_tempdir().full_path
    folder = self.create_tempdir().full_path
    with contextlib.redirect_stdout(io.StringIO()):
      scalable_agent.train(config_lib.Config.from_recipe(
          'catch', logdir=source, total_environment_frames=400,
          eval_every_frames=200, eval_num_episodes=2))
    card = make_zoo.make(
        'mine', source, folder, 3, greedy=True, beside='a test')
    self.assertEqual((card.num_env_frames % 80, len(card.returns)), (0, 3))
    self.assertTrue(card.greedy)
    self.assertNotIn('--test_greedy', card.command)
    self.assertNotIn(source, ''.join(
        path.read_text() for path in pathlib.Path(folder).glob('*.json')))
    agent = scalable_agent.load(folder)
    self.assertTrue(agent.config.test_greedy)
    self.assertEqual(agent.config.video_num_episodes, 1)
    self.assertEqual(agent.play(num_episodes=3), list(card.returns))


class FromZooTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    sys.path.insert(0, str(_ROOT / 'benchmarks'))
    self._logdir = pathlib.Path(self.create_tempdir().full_path) / 'run'

  def test_training_resumes_from_an_agent(self):
    import from_zoo
    from_zoo.make('catch', self._logdir)
    with np.load(weights.path(zoo.folder('zoo:catch'))) as arrays:
      frames = int(arrays['num_env_frames'])
    before = scalable_agent.load(str(self._logdir))
    self.assertEqual(before.num_env_frames, frames)
    shipped = scalable_agent.load('zoo:catch')
    for variable, expected in zip(
        before.agent.variables, shipped.agent.variables, strict=True):
      np.testing.assert_array_equal(variable, expected)
    config = config_lib.trained_with(str(self._logdir))
    with contextlib.redirect_stdout(io.StringIO()) as output:
      scalable_agent.train(dataclasses.replace(
          config, total_environment_frames=frames + 2000))
    self.assertIn(f'Resuming from {self._logdir}', output.getvalue())
    with self.assertRaisesRegex(
        errors.CheckpointError,
        'does not fit this agent .* Changed: --hidden_sizes=7 --total_'
        rf'\S+; before: --hidden_sizes={config.hidden_sizes} --total_\S+.$'):
      scalable_agent.train(dataclasses.replace(
          config, hidden_sizes='7', total_environment_frames=frames + 3000))
    after = scalable_agent.load(str(self._logdir))
    self.assertGreaterEqual(after.num_env_frames, frames + 2000)
    self.assertTrue(any(
        np.any(a.numpy() != b.numpy()) for a, b in zip(
            before.agent.variables, after.agent.variables, strict=True)))
    with self.assertRaisesRegex(SystemExit, 'is not empty'):
      from_zoo.make('catch', self._logdir)

  def test_agents_without_all_weights_are_refused(self):
    import from_zoo
    with self.assertRaisesRegex(SystemExit, 'lacks weights'):
      from_zoo.make('pendulum', self._logdir)
    self.assertFalse(self._logdir.exists())


# See `mutations.py`.
MUTATIONS = (
    dict(file='runs/weights',
         catches='test_matrices_are_rounded_and_other_arrays_are_not', rows=(
        ('large numbers become infinite',
         'if is_matrix and np.abs(array).max() <= _LARGEST else array)',
         'if is_matrix else array)'),
        ('vectors are rounded', 'array.ndim > 1', 'array.ndim > 0'),
        ('all matrices are rounded to zero', 'array.astype(np.float32)',
         '0 * array.astype(np.float32)'),
    )),
    dict(file='runs/weights', catches='test_weights_are_found_by_name', rows=(
        ('weights change places', 'sorted(agent.variables, key=_numbers)',
         'agent.variables'),
        ('numbers as texts', 'int(number or 0)', '(number or "")'),
        ('other names are not noticed',
         'if set(arrays) != {_FRAMES, *variables}:', 'if not variables:'),
    )),
    dict(file='zoo/__init__', catches='test_other_directories_are_left_alone',
         rows=(
        ('files of the user are overwritten',
         'if os.path.exists(target) and not', 'if not target and not'),
    )),
    dict(file='zoo/__init__',
         catches='test_other_programs_see_whole_files_only', rows=(
        ('copies are written in place', 'new = os.path.join(parent, target)',
         'new = target'),
        ('equal files are copied', 'if not os.path.exists(other) or not',
         'if True or not'),
        ('older files stay', 'or not filecmp.cmp(', 'and not filecmp.cmp('),
    )),
    dict(file='runs/checkpoint_files',
         catches='test_a_copy_cannot_be_trained_further', rows=(
        ('agents of the zoo are overwritten',
         "if identity['level'] and os.path.exists(weights.path(logdir)):",
         "if identity['level'] is None:"),
    )),
)


if __name__ == '__main__':
  absltest.main()
