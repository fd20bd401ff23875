# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests that docs/logging.md explains all that a run writes and shows."""

import functools
import pathlib
import re
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import eager
import pytest
from scalable_agent.runs import metrics
from scalable_agent.runs import summaries
from scalable_agent.settings import config as config_lib

_ROOT = pathlib.Path(__file__).resolve().parent.parent
# Names of the page for each group of variables.
_GROUP = re.compile(r'^train/(critic|policy|temperature|duals)/')


@functools.cache
def _page():
  return (_ROOT / 'docs' / 'logging.md').read_text(encoding='utf-8')


def _names():
  return set(re.findall(r'`([\w/]+)`', _page()))


def _unexplained(tags):
  return {tag for tag in (_GROUP.sub('train/GROUP/', tag) for tag in tags)
          if tag not in _names()}


class PageTest(absltest.TestCase):

  def test_stages_are_explained(self):
    found = {stage for path in (_ROOT / 'scalable_agent').rglob('*.py')
             for stage in re.findall(r"\.stage\('(\w+)'\)", path.read_text())}
    self.assertGreater(len(found), 7)
    explained = {name.split('/')[2] for name in _names()
                 if name.startswith('time/') and name.count('/') == 2}
    self.assertEmpty(found - explained)

  def test_rows_of_the_panel_are_explained(self):
    source = (_ROOT / 'scalable_agent/runs/panel.py').read_text()
    rows = set(re.findall(r"add_row\(\s*'([\w ]+)'", source))
    self.assertIn('policy lag', rows)
    self.assertEmpty({row for row in rows if f'\n| {row} |' not in _page()})

  def test_counts_of_workers_are_explained(self):
    names = set()
    for name in 'acting/local', 'distributed/crew', 'distributed/remote_actors':
      text = (_ROOT / 'scalable_agent' / f'{name}.py').read_text()
      body = text.split('def counts(self)')[1].split('  def ')[0]
      names |= set(re.findall(r"'(\w+)':", body))
    self.assertContainsSubset(['workers', 'lost_groups', 'bytes'], names)
    self.assertEmpty(_unexplained(
        summaries.tag(f'actors/{name}') for name in names))

  def test_groups(self):
    for name, tag in (
        ('learning_rate', 'learning_rate'), ('total_loss', 'total_loss'),
        ('critic/learning_rate', 'train/critic/learning_rate'),
        ('entropy', 'train/entropy'), ('mean_return', 'episode/mean_return'),
        ('policy_lag', 'lag/policy_lag'), ('time/actor/wait',) * 2,
        ('frames_per_second', 'time/frames_per_second'),
        ('actors/workers', 'time/actors/workers')):
      self.assertEqual(summaries.tag(name), tag)


class RunTest(parameterized.TestCase):

  @parameterized.parameters(
      ('impala', 'catch', dict(normalise_returns=True)),
      ('appo', 'target', dict(kl_cost=.1)), ('ddqn', 'catch', {}),
      ('ddpg', 'target', {}), ('td3', 'target', {}), ('sac', 'target', {}),
      ('mpo', 'target', {}), ('mpo', 'catch', {}))
  @pytest.mark.slow
  def test_every_scalar_is_explained(self, algorithm, level, settings):
    if algorithm in ('impala', 'appo'):
      settings = dict(settings, batch_size=2, total_environment_frames=30,
                      use_lstm=False)
    else:
      settings = dict(settings, min_replay_steps=20, replay_steps=99,
                      total_environment_frames=40, batch_size=4,
                      updates_per_step=.25)
    if (algorithm, level) == ('mpo', 'target'):
      settings['num_samples'] = 2
    with mock.patch.object(metrics.MetricsWriter, 'write_scalars') as write:
      eager.train(config_lib.Config(
          logdir=self.create_tempdir().full_path, level_name=level,
          algorithm=algorithm, num_actors=2, unroll_length=5, xla='none',
          hidden_sizes='8', agent='mlp', save_summaries_secs=1e-9, **settings))
    tags = {tag for call in write.call_args_list for tag in call.args[0]}
    self.assertGreater(len(tags), 10)
    self.assertContainsSubset(
        {'episode', 'lag', 'time', 'train'}, {t.split('/')[0] for t in tags})
    self.assertEqual('train/actions_at_bounds' in tags, level == 'target')
    self.assertEqual('train/observations_clipped' in tags, algorithm == 'appo')
    self.assertEmpty(_unexplained(tags))


MUTATIONS = (
    dict(file='runs/summaries', catches='test_groups',
         rows=(
        ('tags of the reference get a group', 'name in _REFERENCE or ', ''),
        ('time is a group twice', ' or start in _WHOLE', ''),
    )),
)


if __name__ == '__main__':
  absltest.main()
