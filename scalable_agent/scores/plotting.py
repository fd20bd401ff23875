# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Draws learning curves of one or several runs, with published scores."""

from collections.abc import Collection, Mapping, Sequence
import contextlib
import os
import types
from typing import NamedTuple, TYPE_CHECKING

import numpy as np
from scalable_agent import errors
from scalable_agent.scores import episodes_csv
from scalable_agent.scores import evaluations as evaluations_lib
from scalable_agent.scores import groups as groups_lib
from scalable_agent.scores import levels as levels_lib
from scalable_agent.scores import statistics_plot
from scalable_agent.scores import suites
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import files

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure

# (max levels, columns of levels)
_COLUMNS = ((3, 1), (12, 2), (10**9, 4))
_LINE_STYLES = ('-', '--', '-.', ':', (0, (1, 4)))
# Max episodes per run drawn as dots; of more episodes, every n-th is drawn.
_MAX_DOTS = 2000
# Min runs with equal settings but other seeds that are drawn as one band.
_MIN_SEEDS = 3
_NUM_POINTS = 400
# A band needs runs with at least this share of the frames of the longest run.
_MIN_COMMON_RANGE = .9
# A curve skips this share of the first window of its mean.
_SKIPPED_SHARE = 1 / 5


class Curve(NamedTuple):
  """The episodes of a run on one level, in the order in which they ended.

  Attributes:
    num_env_frames: float `[N]`, frames trained.
    train_time_s: float `[N]`, seconds trained.
    episode_return: float `[N]`, unclipped.
  """
  num_env_frames: np.ndarray
  train_time_s: np.ndarray
  episode_return: np.ndarray


def write_pictures(logdirs: Mapping[str, str], path: str,
                   num_episodes: int, groups: Mapping[str, str]) -> list[str]:
  """Draws runs by label: learning curves, and statistics over several seeds.

  `groups` has the `groups.SeedRun.group` of each label. Without statistics, an
  earlier picture of statistics of the same name is removed. Returns the paths
  of the pictures. Raises ConfigError if a run has no episodes, a picture cannot
  be written, or matplotlib is missing.
  """
  runs = dict(zip(logdirs, map(read_curves, logdirs.values())))
  configs = dict(zip(logdirs, map(_trained_with, logdirs.values())))
  evaluations = {label: read_evaluations(
      logdir, _levels_played(configs[label]) or runs[label])
                 for label, logdir in logdirs.items()}
  bands = seeds_of_one(configs, groups)
  _save(draw(runs, num_episodes, evaluations, bands), path)
  figure = statistics_plot.make([
      statistics_plot.CurvesOfRun(settings, {
          level: _line(curve, 0, num_episodes)
          for level, curve in runs[label].items()}, groups[label])
      for label, settings in configs.items() if settings])
  paths = [path, '_statistics'.join(os.path.splitext(path))]
  if figure:
    _save(figure, paths[1])
  else:
    with contextlib.suppress(OSError):
      os.remove(paths[1])
  return paths if figure else paths[:1]


def _save(figure: 'Figure', path: str) -> None:
  try:
    with files.whole(path, f'{path}.{os.getpid()}.tmp') as f:
      figure.savefig(f, format=os.path.splitext(path)[1][1:], dpi=110)
  except (OSError, ValueError) as e:
    raise errors.ConfigError(
        f'The picture {path} cannot be written: {errors.reason(e)}.') from e


def _levels_played(config: config_lib.Config | None) -> list[str] | None:
  """Returns the levels of the training, even levels without an episode."""
  return None if config is None else levels_lib.played(
      levels_lib.level_names(config.level_name, config.is_test),
      config.num_actors)


def _trained_with(logdir: str) -> config_lib.Config | None:
  try:
    return config_lib.trained_with(logdir)
  except errors.ConfigError:  # Damaged, or of another version.
    return None


def seeds_of_one(configs: Mapping[str, config_lib.Config | None],
                 groups: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
  """Returns the bands of three or more runs that differ only in their seeds.

  `configs` are the settings by label of the run; None if unknown. `groups` are
  as for `write_pictures`: a band has runs of one group. The result has the
  labels of the runs of each band, by the label of the band.
  """
  bands: dict[tuple, dict[str, int]] = {}
  for label, config in configs.items():
    if config:
      key = groups[label], groups_lib.key(config)
      bands.setdefault(key, {})[label] = config.seed
  return {f'{next(iter(band))} and {len(band) - 1} other seeds: '
          'median, least and most': tuple(band)
          for band in bands.values()
          if len(set(band.values())) == len(band) >= _MIN_SEEDS}


def minutes(logdir: str) -> float | None:
  """Returns the minutes until the last episode; None without an episode."""
  try:
    episode = episodes_csv.last(logdir)
  except errors.ConfigError:
    return None
  return episode and episode.train_time_s / 60


def with_curves(logdirs: Mapping[str, str]) -> dict[str, str]:
  """Returns the directories, by name, with a curve; prints other names."""
  found = {name: logdir for name, logdir in logdirs.items()
           if minutes(logdir) is not None}
  if len(found) < len(logdirs):
    print('No episode is finished, so there is no curve, of '
          f'{", ".join(name for name in logdirs if name not in found)}.')
  return found


def read_curves(logdir: str) -> dict[str, Curve]:
  """Returns the curves of a run by level; ConfigError without an episode."""
  kept = episodes_csv.read(logdir)
  if not kept:
    raise errors.ConfigError(
        f'--logdir={logdir} has no curve to draw: no episode is finished yet.')
  by_level: dict[str, list[list[float]]] = {}
  for level, *values in kept:
    by_level.setdefault(level, []).append(values)
  return {level: Curve(*np.array(values, np.float64).T)
          for level, values in by_level.items()}


def read_evaluations(
    logdir: str, levels: Collection[str]) -> dict[str, Curve]:
  """Returns the mean returns of the evaluations of a run, if any.

  The key is the level, or the title of a panel of its own for means over
  several `levels`.
  """
  found = evaluations_lib.read(logdir)
  if not found:
    return {}
  title = (next(iter(levels)) if len(levels) == 1 else
           f'mean over {len(levels)} levels')
  return {title: Curve(*np.array(
      [(e.num_env_frames, e.train_time_s, e.mean) for e in found]).T)}


def running_mean(values: np.ndarray, window: int) -> np.ndarray:
  """Returns the means of the last `window` values, or of all if fewer."""
  sums = np.cumsum(np.concatenate([[0.0], values]))
  ends = np.arange(1, len(values) + 1)
  starts = np.maximum(ends - window, 0)
  return (sums[ends] - sums[starts]) / (ends - starts)


def draw(runs: dict[str, dict[str, Curve]], num_episodes: int,
         evaluations: Mapping[str, dict[str, Curve]] | None = None,
         bands: Mapping[str, Sequence[str]] | None = None) -> 'Figure':
  """Draws two panels per level: over frames, and over time.

  Lines are means of returns. Dots are single episodes, evenly spaced, at most
  about 2,000 per run.

  Args:
    runs: curves by level, by label of the run.
    num_episodes: number of episodes in the mean return.
    evaluations: mean returns by level, by label of the run.
    bands: labels of runs that are drawn as one band, see `seeds_of_one`. A run
      that is much shorter than the others would cut the band: then each run is
      drawn alone.
  """
  figure_lib, ticker = _import_matplotlib()
  evaluations = evaluations or {}
  levels = list(dict.fromkeys(
      l for curves in (*runs.values(), *evaluations.values()) for l in curves))
  num_columns = next(n for limit, n in _COLUMNS if len(levels) <= limit)
  num_rows = -(-len(levels) // num_columns)
  figure = figure_lib.Figure(figsize=(13 * num_columns, 4 * num_rows + 0.5),
                             layout='constrained')
  all_axes = figure.subplots(num_rows, 2 * num_columns, squeeze=False)
  panels = all_axes.reshape(-1, 2)
  for level, axes in zip(levels, panels):
    _draw_level(axes, level, runs, num_episodes, evaluations, bands or {})
    axes[0].xaxis.set_major_formatter(ticker.EngFormatter(sep=' '))
  for axis in panels[len(levels):].flat:
    axis.set_visible(False)
  return figure


def _draw_level(
    axes: Sequence['Axes'], level: str, runs: Mapping[str, dict[str, Curve]],
    num_episodes: int, evaluations: Mapping[str, dict[str, Curve]],
    bands: Mapping[str, Sequence[str]]) -> None:
  by_frames, by_time = axes
  in_bands: set[str] = set()
  for name, group in bands.items():
    found = [runs[label][level] for label in group if level in runs[label]]
    drawn = [band(found, number, num_episodes) for number in range(2)]
    ends = [curve.num_env_frames[-1] for curve in found]
    if not all(x.size for x, *_ in drawn) or (
        min(ends) < _MIN_COMMON_RANGE * max(ends)):
      continue  # Each run of the group gets its own curve.
    in_bands.update(group)
    color = f'C{list(runs).index(group[0])}'
    for axis, (x, low, middle, high) in zip(axes, drawn):
      axis.fill_between(x, low, high, color=color, alpha=.25, linewidth=0)
      axis.plot(x, middle, color=color, label=name)
  for index, (label, curves) in enumerate(runs.items()):
    curve = curves.get(level)
    if curve and label not in in_bands:
      for axis, number, x in zip(axes, range(2), _abscissae(curve)):
        # Below the lines of all runs.
        axis.plot(x, curve.episode_return, '.', markersize=1.5, alpha=0.25,
                  markevery=-(-len(x) // _MAX_DOTS), color=f'C{index}',
                  zorder=1)
        axis.plot(*_line(curve, number, num_episodes), color=f'C{index}',
                  label=label)
    # Evaluations are few, so also draw the evaluations of runs in a band.
    curve = evaluations.get(label, {}).get(level)
    if curve:
      for axis, x in zip(axes, _abscissae(curve)):
        axis.plot(x, curve.episode_return, '--o', markersize=4,
                  color=f'C{index}', label=f'{label}, evaluations')
  if suite := suites.suite_of([level]):
    _draw_published(axes, suite, level)
  by_frames.set_title(level, loc='left', fontsize='medium')
  by_frames.set_xlabel('environment frames')
  by_time.set_xlabel('time trained [minutes]')
  by_frames.set_ylabel(f'return, mean of the last {num_episodes} episodes')
  by_time.legend(loc='center left', bbox_to_anchor=(1.01, 0.5), frameon=False)
  by_frames.grid(alpha=0.3)
  by_time.grid(alpha=0.3)


def band(curves: Sequence[Curve], number: int, num_episodes: int
         ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
  """Returns the band of several curves, over the range common to all curves.

  `number` is 0 for frames, 1 for minutes.

  Returns:
    Frames or minutes, and the least, the median and the most of the mean
    returns, interpolated between episodes: each float `[400]`, or empty if the
    curves have no common range.
  """
  lines = [_line(curve, number, num_episodes) for curve in curves]
  start = max((x[0] for x, _ in lines), default=np.inf)
  end = min((x[-1] for x, _ in lines), default=-np.inf)
  if start > end:
    return (np.empty(0),) * 4
  grid = np.linspace(start, end, _NUM_POINTS)
  means = [np.interp(grid, *line) for line in lines]
  return (grid, np.min(means, axis=0), np.median(means, axis=0),
          np.max(means, axis=0))


def _line(curve: Curve, number: int,
          num_episodes: int) -> tuple[np.ndarray, np.ndarray]:
  """Returns frames (0) or minutes (1), and the mean returns at these times."""
  mean = running_mean(curve.episode_return, num_episodes)
  # The mean of the first few episodes jumps.
  first = int(min(num_episodes, len(mean)) * _SKIPPED_SHARE)
  # Seconds may fall a little where a killed run resumed.
  x = np.maximum.accumulate(_abscissae(curve)[number])
  return x[first:], mean[first:]


def _abscissae(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
  return curve.num_env_frames, curve.train_time_s / 60


def _draw_published(axes: Sequence['Axes'], suite: suites.Suite,
                    level: str) -> None:
  low, high = axes[0].dataLim.intervaly
  reach = max(high - low, 1)
  for style, published in zip(
      _LINE_STYLES, (suite.human, *suite.agents, suite.random)):
    score = published.scores[suite.keys[level]]
    label = f'{published.name} {score:,.2f}'
    for axis in axes:
      if low - reach <= score <= high + reach:
        axis.axhline(
            score, label=label, color='0.35', linestyle=style, linewidth=1)
      else:  # An axis up to this score would flatten the curves.
        axis.plot([], label=f'{label}, off the scale', color='0.35',
                  linestyle=style, linewidth=1)


def _import_matplotlib() -> tuple[types.ModuleType, types.ModuleType]:
  try:
    from matplotlib import figure
    from matplotlib import ticker
  except ImportError as e:
    raise errors.ConfigError('--mode=plot needs matplotlib: pip install '
                             '"scalable_agent[plot]".') from e
  return figure, ticker
