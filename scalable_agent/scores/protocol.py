# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Lines of text on how a test differs from training and published tests."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from scalable_agent.scores import levels as levels_lib
from scalable_agent.scores import published_scores
from scalable_agent.scores import suites
from scalable_agent.settings import declare
from scalable_agent.settings import lab_levels
from scalable_agent.settings import sections
from scalable_agent.settings.test_settings import OF_GAMES

_PAPER_FRAMES_PER_GAME = 200_000_000
_REFERENCE_DMLAB30_FRAMES = 10_000_000_000
_COMMON_RECIPE = dict(
    num_action_repeats=4, batch_size=32, discounting=0.99, baseline_cost=0.5,
    optimizer='rmsprop', momentum=0, decay=0.99, correction='vtrace', addon='',
    replay_capacity=0, min_policy_lag=0, separate_baseline=False,
    bootstrap_truncated=False, compute_dtype='float32',
    learning_rate_schedule='linear', lambda_=1, clip_rho=1, clip_c=1,
    clip_pg_rho=1, reduction='sum', clip_gradient_value=0,
    normalise_observations='none', normalise_returns=False)
_ATARI_RECIPE = dict(
    repeat_action_probability=0, max_noops=30, life_loss_ends_episode=True,
    use_lstm=False, use_last_action_reward=False, unroll_length=20,
    entropy_cost=0.01, reward_clipping='abs_one', clip_gradient_norm=40,
    learning_rate=0.0006, epsilon=0.01, **_COMMON_RECIPE)
# The paper searched for the other settings, or adapted them during training.
_DMLAB_RECIPE = dict(
    agent='deep', use_lstm=True, core='lstm', lstm_units=256,
    use_last_action_reward=True, use_instruction=True, width=96, height=72,
    unroll_length=100, reward_clipping='soft_asymmetric', **_COMMON_RECIPE)


def training_remarks(
    config: sections.AllSections, trained_with: sections.AllSections | None,
    levels: Sequence[str]) -> Iterator[str]:
  """Yields a line for each difference between a test and its training.

  `config` has the settings of the test, `trained_with` those of the training,
  None if lost. `levels` are the levels that the test has played so far.
  """
  all_levels = set(_level_names(config))
  if len(levels) < len(all_levels):
    yield f'Played so far: {len(levels)} of {len(all_levels)} levels.'
  if not trained_with:
    return
  for what, names in (('environment', _environment_settings(all_levels)),
                      ('settings', OF_GAMES)):
    changed = [
        f'{name} {getattr(config, name)} instead of '
        f'{getattr(trained_with, name)}'
        for name in _changed(config, trained_with, names)]
    if changed:
      yield f'Not the {what} of the training: {", ".join(changed)}.'
  seen = set(map(levels_lib.test_level, trained_levels(trained_with)))
  unseen = [level for level in levels
            if levels_lib.test_level(level) not in seen]
  if unseen:
    yield f'Levels that this agent was not trained on: {", ".join(unseen)}.'


def differences(
    suite: suites.Suite | None, config: sections.AllSections,
    trained_with: sections.AllSections | None, num_env_frames: int,
    levels: Sequence[str], num_games: int) -> Iterator[str]:
  """Yields a line for each difference from the published tests of a suite.

  Arguments are as for `training_remarks`. `num_env_frames` are the frames of
  the training, and `num_games` is the number of games of each level.
  """
  if not suite:
    return
  levels = [level for level in levels if level in suite.keys]
  if not levels:
    return
  if suite is suites.ATARI57:
    yield from _atari_agent(config, trained_with, num_env_frames)
    yield from _atari_environment(config)
  else:
    yield from _dmlab_agent(trained_with, num_env_frames)
    yield from _dmlab_levels(levels)
  if num_games != suite.num_published_games:
    yield (f'Games per level: {num_games} here, {suite.num_published_games} in '
           'the paper.')
  if config.test_greedy:
    yield ('Actions: the most likely actions here (--test_greedy); the '
           "reference's code samples actions.")
  if trained_with is None:
    yield ('Settings of training: not known, as settings.json in the logdir is '
           'missing or damaged.')
  else:
    yield from _training(suite, trained_with, num_env_frames)


def published_differences(
    config: sections.AllSections, trained_with: sections.AllSections,
    scores: Mapping[str, Sequence[published_scores.Score]],
    num_games: int, num_runs: int) -> Iterator[str]:
  """Yields a line for each difference from scores of the same algorithm.

  `trained_with` has the settings of the training; if lost, of the test.
  `scores` are published scores by level, `num_games` is the number of games of
  each level, and `num_runs` the number of runs that differ by seed only.
  """
  if not scores:
    return
  for level, published in scores.items():
    # Of training levels of DMLab-30, `differences` has a line.
    same = {level, levels_lib.test_level(level)}
    theirs = sorted({s.environment for s in published} - same)
    if theirs:
      yield (f'Environment: {level} here; {", ".join(theirs)} in published '
             'scores. Versions differ in the simulator, and some in rewards or '
             'observations.')
  if config.environment_kwargs:
    yield (f'Arguments of the environment: {config.environment_kwargs} here, '
           'none in published scores: this may be another task.')
  if config.num_action_repeats != 1 and not any(
      declare.is_atari(level) or lab_levels.is_level(level)
      or any('repeat' in s.protocol for s in published)
      for level, published in scores.items()):
    yield (f'Action repeats: {config.num_action_repeats} here, in most '
           'published scores none.')
  policy = ('the policy without exploration' if config.test_greedy else
            'the policy with exploration')
  runs = 'one training run' if num_runs == 1 else f'{num_runs} training runs'
  yield (f'Protocol: {runs} and {num_games} game{"s" * (num_games != 1)}'
         f'{" each" * (num_runs != 1)} of {policy} here; '
         'most published scores are means over several runs, and some are '
         'returns while training, see their sources.')
  if trained_with.algorithm == 'ddqn' and trained_with.double_q:
    yield 'Algorithm: double DQN here, DQN in published scores.'


def plays_as_trained(config: sections.AllSections,
                     trained_with: sections.AllSections) -> bool:
  """Returns whether a test changes no setting of the training."""
  return not _changed(config, trained_with, [
      'level_name', *OF_GAMES,
      *_environment_settings(_level_names(config))])


def _changed(config: sections.AllSections, trained_with: sections.AllSections,
             names: Iterable[str]) -> list[str]:
  return [name for name in names
          if getattr(config, name) != getattr(trained_with, name)]


def _level_names(config: sections.AllSections) -> list[str]:
  return levels_lib.level_names(config.level_name, config.is_test)


def trained_levels(trained_with: sections.AllSections) -> list[str]:
  """Returns the levels that the training has played, maybe not all levels."""
  return levels_lib.played(_level_names(trained_with), trained_with.num_actors)


def _environment_settings(levels: Collection[str]) -> list[str]:
  """Returns the names of the settings that change the levels, in tests."""
  names = sections.names_with('task', 'all')
  if any(map(declare.is_atari, levels)):
    names += sections.names_with('task', 'atari')
  if any(map(levels_lib.has_frame_size, levels)):
    names += sections.names_with('task', 'frames')
  return names


def _atari_agent(
    config: sections.AllSections, trained_with: sections.AllSections | None,
    num_env_frames: int) -> Iterator[str]:
  num_games = trained_with and len(trained_levels(trained_with))
  if not num_games or num_env_frames != num_games * _PAPER_FRAMES_PER_GAME:
    yield (f'Frames trained: {num_env_frames:,} here; '
           f'{_PAPER_FRAMES_PER_GAME:,} for each expert and '
           f'{57 * _PAPER_FRAMES_PER_GAME:,} for the multi-task agent in the '
           'paper.')
  adaptive = 'whose settings were adapted during training, in a population'
  if num_games == 1:
    yield ('Agents: one for this game alone here; the multi-task agent is one '
           f'for all 57, {adaptive}.')
  elif num_games:
    yield (f'Agents: one for {num_games} games here; the experts are one for '
           f'each game, the multi-task agent is one for all 57, {adaptive}.')
  papers = {'shallow': 'IMPALA deep and multi-task have the deep network',
            'deep': 'IMPALA shallow has the small network'}
  yield (f'Network: {config.agent} here; '
         f'{papers.get(config.agent, "shallow or deep in the paper")}.')


def _atari_environment(config: sections.AllSections) -> Iterator[str]:
  if config.full_action_space:
    yield "Action set: all 18 here; each game's own for the experts."
  else:
    yield "Action set: the game's own here; all 18 for the multi-task agent."
  if config.repeat_action_probability:
    yield ('Sticky actions: an action is repeated with probability '
           f'{config.repeat_action_probability:g} here, never in the paper.')
  fire = ' (one less where FIRE is pressed)' if config.fire_on_reset else ''
  yield (f'No-op frames at the start of a game: 0 to {config.max_noops}{fire} '
         'here, 1 to 30 in the paper.')
  if config.test_greedy and not config.repeat_action_probability:
    yield (f'Different games: at most {config.max_noops + 1} per level here, '
           'as nothing but the no-op frames is random; the rest are copies, '
           'which make the interval too narrow.')
  if config.fire_on_reset:
    yield 'FIRE at the start of a game: pressed here; the paper does not say.'
  if config.max_episode_frames != 108_000:
    yield (f'Games are cut off after {config.max_episode_frames:,} frames '
           'here, after 108,000 (30 minutes) as a rule.')


def _dmlab_agent(trained_with: sections.AllSections | None,
                 num_env_frames: int) -> Iterator[str]:
  num_levels = trained_with and len(trained_levels(trained_with))
  if num_levels == 1:
    yield (f'Frames trained: {num_env_frames:,} here; not known '
           'for the experts.')
    yield ('Agents: one for this level alone here, as the experts; PBT is the '
           'best of 24 that are for all levels and adapt their settings.')
    return
  if num_env_frames != _REFERENCE_DMLAB30_FRAMES:
    yield (f'Frames trained: {num_env_frames:,} here; '
           f'{_REFERENCE_DMLAB30_FRAMES:,} over all levels in the '
           "reference's recipe.")
  if num_levels:
    yield (f'Agents: one for {num_levels} levels, with fixed settings, here; '
           'in the paper the experts are one for each level, and PBT is the '
           'best of 24 that adapt theirs.')


def _dmlab_levels(levels: Sequence[str]) -> Iterator[str]:
  training_levels = [
      level for level in levels if levels_lib.test_level(level) != level]
  if training_levels:
    yield (f'Levels of training, not of test: {", ".join(training_levels)}; '
           'published scores are from test levels.')
  if any(level.startswith('lasertag') for level in levels):
    yield ("Human and random scores of lasertag: of the reference's code here; "
           "the paper's table B.1 has small and large maps swapped.")


def _training(suite: suites.Suite, trained_with: sections.AllSections,
              num_env_frames: int) -> Iterator[str]:
  if trained_with.algorithm != 'impala':
    yield (f'Algorithm: {trained_with.algorithm} here, IMPALA in the paper, '
           'with other settings of training.')
  if trained_with.is_off_policy:
    return
  if (trained_with.learning_rate_schedule == 'linear'
      and num_env_frames < trained_with.total_environment_frames):
    yield (f'Learning rate: falls to 0 at '
           f'{trained_with.total_environment_frames:,} frames here, and this '
           f'agent had {num_env_frames:,}: the training is unfinished.')
  recipe = _ATARI_RECIPE if suite is suites.ATARI57 else _DMLAB_RECIPE
  changed = [
      f'{name} {getattr(trained_with, name)} instead of {str(value) or "none"}'
      for name, value in recipe.items() if getattr(trained_with, name) != value]
  if changed:
    yield f'Settings of training: {", ".join(changed)}.'
