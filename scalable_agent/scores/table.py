# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The scores of a test beside published ones, and how the protocols differ.

Intervals are percentile intervals of a bootstrap over the games that were
played. They say how exactly the games measure this one agent, not how well
another training run would do.
"""

import collections
from typing import (Any, Callable, Iterable, Mapping, NamedTuple, Optional,
                    Sequence, Tuple)

import numpy as np
from scalable_agent.scores import atari57
from scalable_agent import config as config_lib
from scalable_agent.scores import data
from scalable_agent.scores import dmlab30
from scalable_agent.scores import levels as levels_lib
from scalable_agent import environments

# With fewer games the interval covers the true mean clearly too rarely: for
# normal, exponential and log-normal returns in 90, 88 and 78 of 100 cases with
# 10 games, and in 94, 93 and 89 with 30.
MIN_GAMES = 30
_NUM_RESAMPLES = 10_000
_RESAMPLES_AT_ONCE = 100

_PAPER_FRAMES_PER_GAME = 200_000_000
_REFERENCE_DMLAB30_FRAMES = 10_000_000_000
_COMMON_RECIPE = dict(
    num_action_repeats=4, batch_size=32, discounting=0.99, baseline_cost=0.5,
    optimizer='rmsprop', momentum=0, correction='vtrace', replay_capacity=0,
    min_policy_lag=0, bootstrap_truncated=False, compute_dtype='float32')
# What Atari games are like. Tests turn off that lost lives end episodes.
_ATARI_SETTINGS = ('repeat_action_probability', 'full_action_space',
                   'max_noops', 'fire_on_reset', 'max_episode_frames')
_ATARI_RECIPE = dict(
    repeat_action_probability=0, max_noops=30, life_loss_ends_episode=True,
    use_lstm=False, use_last_action_reward=False, unroll_length=20,
    entropy_cost=0.01, reward_clipping='abs_one', clip_gradient_norm=40,
    learning_rate=0.0006, epsilon=0.01, **_COMMON_RECIPE)
# Without what the paper searched for or adapted during training.
_DMLAB_RECIPE = dict(
    agent='deep', use_lstm=True, use_last_action_reward=True,
    use_instruction=True, width=96, height=72, unroll_length=100,
    reward_clipping='soft_asymmetric', **_COMMON_RECIPE)


class Published(NamedTuple):
  """An agent, or a human, of whom scores are published.

  Attributes:
    name: short, for the head of a column.
    scores: return by level, as the suite names it.
    source: where they are published.
  """
  name: str
  scores: Mapping[str, float]
  source: str


class Statistic(NamedTuple):
  """A number over all levels of a suite.

  Attributes:
    name: for the table.
    reduce: makes the number of normalised scores `[..., levels]`, in percent.
    baselines: what 0 and 100 % are.
    published: the published number by name of the agent. Those of others are
      recomputed from their scores.
  """
  name: str
  reduce: Callable[[np.ndarray], np.ndarray]
  baselines: data.Baselines
  published: Mapping[str, float]


class Suite(NamedTuple):
  """Levels of which scores are published.

  Attributes:
    name: as people write it.
    keys: the level's name in `Published.scores`, by name of an environment.
    random: uniformly random actions.
    human: a human player.
    agents: of whom there is a column in the table.
    statistics: what is reported over all levels.
    num_published_games: how many games a published score is the mean of.
    constants: which random and human scores the published means need.
    other_agents: agents without a column, with what is published of them.
  """
  name: str
  keys: Mapping[str, str]
  random: Published
  human: Published
  agents: Tuple[Published, ...]
  statistics: Tuple[Statistic, ...]
  num_published_games: int
  constants: str
  other_agents: Tuple[str, ...]

  def normalized(self, level: str, score: float) -> float:
    """Returns a score in percent, where 0 is random and 100 is human."""
    baselines = data.Baselines(self.human.scores, self.random.scores)
    return float(baselines.normalized(self.keys[level], score))


class Row(NamedTuple):
  """The games of one level.

  Attributes:
    level: its name.
    returns: unclipped returns of whole games.
    mean: their mean.
    std: their standard deviation.
    interval: 95 % bootstrap interval of the mean.
  """
  level: str
  returns: Tuple[float, ...]
  mean: float
  std: float
  interval: Tuple[float, float]


class Aggregate(NamedTuple):
  """A statistic over all levels of a suite.

  Attributes:
    name: of the statistic.
    value: ours.
    interval: its 95 % stratified bootstrap interval.
    published: `(value, whether it is recomputed)` by name of the agent.
  """
  name: str
  value: float
  interval: Tuple[float, float]
  published: Mapping[str, Tuple[float, bool]]


class Run(NamedTuple):
  """An agent that was tested, and how.

  Attributes:
    config: the settings of the test.
    num_env_frames: frames the agent was trained for.
    trained_with: the settings of its training, None where they are lost.
    rows: one per level that it has played.
    source: the file that this was read from, without extension, or ''.
  """
  config: config_lib.Config
  num_env_frames: int
  trained_with: Optional[config_lib.Config]
  rows: Tuple[Row, ...]
  source: str = ''


class Table(NamedTuple):
  """Everything that is written about the tests of one or several agents."""
  runs: Tuple[Run, ...]
  suite: Optional[Suite]
  aggregates: Tuple[Aggregate, ...]
  remarks: Tuple[str, ...]
  differences: Tuple[str, ...]

  @property
  def rows(self) -> Tuple[Row, ...]:
    """The rows of all agents."""
    return tuple(row for run in self.runs for row in run.rows)


def bootstrap_means(returns: Sequence[float],
                    rng: np.random.Generator) -> np.ndarray:
  """Returns the means of 10,000 samples, as large as `returns`, from it."""
  returns = np.asarray(returns, np.float64)
  return np.concatenate([
      rng.choice(returns, (_RESAMPLES_AT_ONCE, len(returns))).mean(axis=1)
      for _ in range(_NUM_RESAMPLES // _RESAMPLES_AT_ONCE)])


def interquartile_mean(values: np.ndarray) -> np.ndarray:
  """Returns the mean without the lowest and highest quarter of the last axis.

  A quarter is rounded down to whole values, as in rliable.
  """
  values = np.sort(values, axis=-1)
  cut = values.shape[-1] // 4
  return values[..., cut:values.shape[-1] - cut].mean(axis=-1)


def make_row(level: str, returns: Sequence[float]) -> Row:
  """Makes the row of a level from the returns of its games."""
  means = bootstrap_means(returns, np.random.default_rng(0))
  return Row(level, tuple(map(float, returns)), float(np.mean(returns)),
             float(np.std(returns)), _interval(means))


def make_table(runs: Sequence[Run]) -> Table:
  """Puts the rows of tests beside what is published.

  Args:
    runs: an agent and its games each. Several agents are taken together, as the
      experts of the paper are.
  """
  rows = [row for run in runs for row in run.rows]
  suite = suite_of(row.level for row in rows)
  keys = [suite.keys.get(row.level) for row in rows] if suite else []
  complete = suite and sorted(filter(None, keys)) == sorted(suite.human.scores)
  return Table(
      tuple(runs), suite, _aggregates(suite, rows) if complete else (),
      remarks=(*_lines_of_all(map(_run_remarks, runs)),
               *_remarks(suite, rows, complete)),
      differences=_lines_of_all(_differences(suite, run) for run in runs))


def _lines_of_all(lines_of_runs: Iterable[Iterable[str]]) -> Tuple[str, ...]:
  """Returns each line once; those of some agents alone say of which."""
  numbers = collections.defaultdict(list)
  num_runs = 0
  for num_runs, lines in enumerate(lines_of_runs, 1):
    for line in lines:
      numbers[line].append(num_runs)
  return tuple(
      line if len(n) == num_runs else
      f'{line[:-1]} (agent{"s" if len(n) > 1 else ""} '
      f'{", ".join(map(str, n[:5]))}{", ..." if len(n) > 5 else ""}).'
      for line, n in numbers.items())


def suite_of(levels: Any) -> Optional[Suite]:
  """Returns the suite that (some of) the levels belong to, or None."""
  levels = set(levels)
  return next((s for s in SUITES if levels & set(s.keys)), None)


def _interval(means) -> Tuple[float, float]:
  low, high = np.percentile(means, [2.5, 97.5])
  return float(low), float(high)


def _normalize(scores, keys, baselines):
  """Returns scores `[..., keys]` in percent."""
  scores = np.asarray(scores)
  return np.stack([baselines.normalized(key, scores[..., i])
                   for i, key in enumerate(keys)], axis=-1)


def _aggregates(suite, rows):
  rows = [row for row in rows if row.level in suite.keys]
  keys = [suite.keys[row.level] for row in rows]
  rng = np.random.default_rng(0)  # One: levels are resampled independently.
  resampled = np.stack([bootstrap_means(row.returns, rng) for row in rows], -1)
  aggregates = []
  for statistic in suite.statistics:
    def reduce(scores, keys, statistic=statistic):
      return statistic.reduce(_normalize(scores, keys, statistic.baselines))
    published = {}
    for agent in suite.agents:
      if agent.name in statistic.published:
        published[agent.name] = statistic.published[agent.name], False
      else:
        published[agent.name] = float(reduce(
            [agent.scores[key] for key in keys], keys)), True
    aggregates.append(Aggregate(
        statistic.name, float(reduce([row.mean for row in rows], keys)),
        _interval(reduce(resampled, keys)), published))
  return tuple(aggregates)


def _remarks(suite, rows, complete):
  fewest = min(rows, key=lambda row: len(row.returns))
  if len(fewest.returns) < MIN_GAMES:
    advice = (f'; the paper plays {suite.num_published_games}' if suite else '')
    yield (f'Too few episodes: {len(fewest.returns)} of {fewest.level}. With '
           'fewer than '
           f'{MIN_GAMES} the interval is too narrow to be relied on: raise '
           f'--test_num_episodes{advice}.')
  if suite and not complete and len(rows) > 1:
    num_levels = len({suite.keys.get(row.level) for row in rows} - {None})
    yield (f'No numbers over {suite.name}: they need each of its '
           f'{len(suite.human.scores)} levels once; there are {num_levels} of '
           f'them in {len(rows)} levels.')
  outside = [row.level for row in rows if suite and row.level not in suite.keys]
  if outside:
    yield f'Not in {suite.name}: {", ".join(outside)}.'


def _run_remarks(run):
  num_levels = len(set(_levels(run.config)))
  if len(run.rows) < num_levels:
    yield f'Played so far: {len(run.rows)} of {num_levels} levels.'
  if not run.trained_with:
    return
  changed = [f'{name} {here} instead of {there}'
             for name in _environment_settings(_levels(run.config))
             for here, there in [(getattr(run.config, name),
                                  getattr(run.trained_with, name))]
             if here != there]
  if changed:
    yield f'Not the environment of the training: {", ".join(changed)}.'
  seen = set(map(_test_level, _levels(run.trained_with)))
  unseen = [row.level for row in run.rows if _test_level(row.level) not in seen]
  if unseen:
    yield f'Levels that this agent was not trained on: {", ".join(unseen)}.'


def _levels(config):
  return levels_lib.level_names(config.level_name, config.is_test)


def _environment_settings(levels):
  """Returns the names of the settings that change what the levels are like."""
  yield 'num_action_repeats'
  if any(map(environments.atari.is_level, levels)):
    yield from _ATARI_SETTINGS
  if any(environments.dmlab.is_level(level)
         or environments.vizdoom.is_level(level) for level in levels):
    yield from ('width', 'height')


def _test_level(level):
  return dmlab30.LEVEL_MAPPING.get(level, level)


def _differences(suite, run):
  levels = [row.level for row in run.rows if suite and row.level in suite.keys]
  if not levels:
    return
  if suite is ATARI57:
    yield from _atari_differences(run)
  else:
    yield from _dmlab_differences(run, levels)
  num_games = len(run.rows[0].returns)  # The same of every level.
  if num_games != suite.num_published_games:
    yield (f'Games per level: {num_games} here, {suite.num_published_games} in '
           'the paper.')
  if run.config.test_greedy:
    yield ('Actions: the most likely ones here (--test_greedy); the '
           "reference's code samples them.")
  if run.trained_with is None:
    yield ('Settings of training: not known, as settings.json in the logdir is '
           'missing or of another version.')
  else:
    yield from _training_differences(suite, run)


def _atari_differences(run):
  config, trained_with = run.config, run.trained_with
  num_games = len(set(_levels(trained_with))) if trained_with else None
  if num_games is None or (
      run.num_env_frames != num_games * _PAPER_FRAMES_PER_GAME):
    yield (f'Frames trained: {run.num_env_frames:,} here; '
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
  others = {'shallow': 'IMPALA deep and multi-task have the deep one',
            'deep': 'IMPALA shallow has the small one'}
  yield (f'Network: {config.agent} here; '
         f'{others.get(config.agent, "shallow or deep in the paper")}.')
  if config.full_action_space:
    yield "Action set: all 18 here; each game's own for the experts."
  else:
    yield "Action set: the game's own here; all 18 for the multi-task agent."
  if config.repeat_action_probability:
    yield ('Sticky actions: an action is repeated with probability '
           f'{config.repeat_action_probability:g} here, never in the paper.')
  yield (f'No-op frames at the start of a game: 0 to {config.max_noops} here, '
         '1 to 30 in the paper.')
  if config.test_greedy and not config.repeat_action_probability:
    yield (f'Different games: at most {config.max_noops + 1} per level here, '
           'as nothing but the no-op frames is random; the rest are copies, '
           'which make the interval too narrow.')
  if config.fire_on_reset:
    yield 'FIRE at the start of a game: pressed here; the paper does not say.'
  if config.max_episode_frames != 108_000:
    yield (f'Games are cut off after {config.max_episode_frames:,} frames '
           'here, after 108,000 (30 minutes) as a rule.')


def _dmlab_differences(run, levels):
  trained_with = run.trained_with
  num_levels = len(set(_levels(trained_with))) if trained_with else None
  if num_levels == 1:
    yield (f'Frames trained: {run.num_env_frames:,} here; how many an expert '
           'had is not known to this table.')
    yield ('Agents: one for this level alone here, as the experts; PBT is the '
           'best of 24 that are for all levels and adapt their settings.')
  else:
    if run.num_env_frames != _REFERENCE_DMLAB30_FRAMES:
      yield (f'Frames trained: {run.num_env_frames:,} here; '
             f'{_REFERENCE_DMLAB30_FRAMES:,} over all levels in the '
             "reference's recipe.")
    if num_levels:
      yield (f'Agents: one for {num_levels} levels, with fixed settings, here; '
             'in the paper the experts are one for each level, and PBT is the '
             'best of 24 that adapt theirs.')
  training_levels = [
      level for level in levels if _test_level(level) != level]
  if training_levels:
    yield (f'Levels of training, not of test: {", ".join(training_levels)}; '
           'published scores are those of test levels.')
  if any(level.startswith('lasertag') for level in levels):
    yield ("Human and random scores of lasertag: of the reference's code here; "
           "the paper's table B.1 has small and large maps swapped.")


def _training_differences(suite, run):
  trained_with = run.trained_with
  if run.num_env_frames < trained_with.total_environment_frames:
    yield (f'Learning rate: falls to 0 at '
           f'{trained_with.total_environment_frames:,} frames here, and this '
           f'agent had {run.num_env_frames:,}: it was not trained to its end.')
  recipe = _ATARI_RECIPE if suite is ATARI57 else _DMLAB_RECIPE
  others = [
      f'{name} {getattr(trained_with, name)} instead of {value}'
      for name, value in recipe.items() if getattr(trained_with, name) != value]
  if others:
    yield f'Settings of training: {", ".join(others)}.'


def _mean(scores):
  return np.mean(scores, axis=-1)


def _median(scores):
  return np.median(scores, axis=-1)


def _capped_mean(scores):
  return np.mean(np.minimum(scores, 100), axis=-1)


def _atari57() -> Suite:
  names = {'impala_shallow': 'IMPALA shallow', 'impala_deep': 'IMPALA deep',
           'impala_deep_multitask': 'IMPALA multi-task'}
  agents = {name: atari57.PUBLISHED[key] for key, name in names.items()}
  return Suite(
      name='Atari-57',
      keys={level: atari57.game_of(level) for level in atari57.LEVELS},
      random=Published('random', atari57.RANDOM_SCORES,
                       atari57.BASELINE_SOURCES['random']),
      human=Published('human', atari57.HUMAN_SCORES,
                      atari57.BASELINE_SOURCES['human']),
      agents=tuple(Published(name, agent.scores, agent.source)
                   for name, agent in agents.items()),
      statistics=(
          Statistic('median', _median, atari57.BASELINES,
                    {name: agent.median for name, agent in agents.items()}),
          Statistic("mean, with the constants of the paper's means", _mean,
                    atari57.PAPER_MEAN_BASELINES,
                    {name: agent.mean for name, agent in agents.items()}),
          Statistic('mean', _mean, atari57.BASELINES, {}),
          Statistic('interquartile mean', interquartile_mean,
                    atari57.BASELINES, {})),
      num_published_games=200,
      constants=(
          "The paper's means come out with a human score of 9.3 in Pong, not "
          '14.6, and a random score of 0 in Video Pinball, not 16,256.9, which '
          'it does not say; its medians come out with either.'),
      other_agents=tuple(
          f'{agent.name}: {statistic} of {value:g} ({agent.source})'
          for key, agent in atari57.PUBLISHED.items() if key not in names
          for statistic, value, is_verified in (
              ('median', agent.median, agent.median_verified),
              ("mean, with the constants of the paper's means,", agent.mean,
               agent.mean_verified))
          if is_verified))


def _dmlab30() -> Suite:
  names = {'impala_deep_experts': 'IMPALA experts',
           'impala_deep_pbt': 'IMPALA PBT'}
  agents = {name: dmlab30.PUBLISHED[key] for key, name in names.items()}
  return Suite(
      name='DMLab-30',
      keys={level: dmlab30.LEVEL_MAPPING.get(level, level)
            for level in dmlab30.ALL_LEVELS},
      random=Published('random', dmlab30.RANDOM_SCORES,
                       dmlab30.BASELINE_SOURCES['random']),
      human=Published('human', dmlab30.HUMAN_SCORES,
                      dmlab30.BASELINE_SOURCES['human']),
      agents=tuple(Published(name, agent.returns, agent.source)
                   for name, agent in agents.items()),
      statistics=(
          Statistic("mean capped at 100, with the paper's constants",
                    _capped_mean, dmlab30.PAPER_BASELINES,
                    {name: a.mean_capped for name, a in agents.items()}),
          Statistic('mean capped at 100', _capped_mean, dmlab30.BASELINES, {}),
          Statistic('mean', _mean, dmlab30.BASELINES, {}),
          Statistic('interquartile mean', interquartile_mean,
                    dmlab30.BASELINES, {})),
      num_published_games=500,
      constants=(
          "The paper's means come out with its table B.1, which is rounded and "
          'has small and large maps of lasertag swapped; all other numbers '
          "are with the scores of the reference's code."),
      other_agents=tuple(
          f'{agent.name}: mean capped at 100 of {agent.mean_capped:g} '
          f'({agent.source}{"; " + agent.note if agent.note else ""})'
          for key, agent in dmlab30.PUBLISHED.items()
          if key not in names and agent.verified))


ATARI57 = _atari57()
DMLAB30 = _dmlab30()
SUITES = (ATARI57, DMLAB30)
