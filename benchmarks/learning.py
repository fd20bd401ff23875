# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains by the recipes of the package, and compares the returns with marks.

  python benchmarks/learning.py --out=DIRECTORY [--runs=ddqn_catch,sac_catch]
      [--seeds=3] [--jobs=2] [--kills=10] [-- FLAGS]

Every seed is a run of experiment.py with greedy evaluations. FLAGS are added to
all runs. With `--kills`, `killed.py` kills each run that many times; such runs
have a directory of their own within DIRECTORY. A finished run is not run again;
a run that was cut off starts again. Writes learning.json, learning.md and a
picture of each recipe.

*   The result of a run is the mean return of the last evaluation, or, for
    `best`, of the best evaluation: the policies of Q-learning keep changing,
    and the program keeps the best checkpoint. For `success`, the result is the
    share of episodes that reach the goal.
*   A mark is reached if each seed reaches the mark.
*   "First at the mark" is the first evaluation with that result.
*   Intervals are 95 % intervals of the mean over seeds, from Student's t
    distribution.
*   Frames per second are those of a whole run, evaluations included, while
    `--jobs` runs and other programs share the machine: see the load.
"""

import argparse
import json
import os
import pathlib
import signal
import statistics
import sys
from typing import NamedTuple

import numpy as np

_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT), str(_ROOT / 'benchmarks')]
import ablation
from scalable_agent.scores import evaluations
from scalable_agent.settings import config as config_lib


class Recipe(NamedTuple):
  """A recipe, its evaluations, and its mark.

  Attributes:
    file: the name of the recipe's file, without .flags.
    every_frames: frames from one evaluation to the next.
    num_episodes: episodes of each evaluation.
    mark: the result that each seed must reach.
    of: `last`, `best` or `success`.
    is_limit: whether the mark must not be exceeded instead.
    flags: further flags, after the flags of the file.
  """
  file: str
  every_frames: int
  num_episodes: int
  mark: float
  of: str = 'last'
  is_limit: bool = False
  flags: tuple[str, ...] = ()

  def value(self, curve: list[evaluations.Evaluation]) -> float:
    """Returns the result of a run."""
    if self.of == 'best':
      return max(e.mean for e in curve)
    if self.of == 'success':
      # Whoever does not reach the goal gets -1 in each step, of 15.
      return statistics.fmean(r > -15 for r in curve[-1].returns)
    return curve[-1].mean

  def is_reached(self, value: float) -> bool:
    return value <= self.mark if self.is_limit else value >= self.mark


def _with_and_without(
    name: str, with_memory: Recipe, limit: float,
    *lstm_flags: str) -> dict[str, Recipe]:
  """Returns a recipe, and the same one without memory, which has a limit."""
  return {
      name: with_memory._replace(
          flags=(*with_memory.flags, '--use_lstm', *lstm_flags)),
      f'{name}_without_memory': with_memory._replace(
          mark=limit, is_limit=True)}


def _cue(algorithm: str, name: str, level_flags: tuple[str, ...], delay: int,
         num_frames: int, limit: float,
         of: str = 'last') -> dict[str, Recipe]:
  """Returns recipes of a level with a cue `delay` steps before a choice.

  The last action is not shown: actions could carry the cue.
  """
  steps = max(delay, 10)
  return _with_and_without(
      f'{algorithm}_{name}', Recipe(
          f'{algorithm}_catch', num_frames // 10, 100, .95, of, flags=(
              *level_flags, f'--total_environment_frames={num_frames}',
              '--hidden_sizes=32', '--num_action_repeats=1', '--batch_size=32',
              '--learning_rate=0.002', '--min_replay_steps=500',
              *{'sac': ['--target_entropy_ratio=0.3',
                        '--target_update_rate=0.05'],
                'ddqn': ['--target_update_period=100']}.get(algorithm, []))),
      limit, '--lstm_units=32', '--nouse_last_action_reward',
      '--unroll_length=5', f'--sequence_length={steps}',
      f'--burn_in_steps={steps}')


def _of_appo() -> dict[str, Recipe]:
  """Returns the recipes of toys with APPO."""
  picture = ('--level_name=toy_variants:CatchPicture-v0', '--num_actors=16',
             '--total_environment_frames=12000')
  return {
      'appo_catch': Recipe('appo_catch', 1000, 100, .95),
      'appo_catch_picture': Recipe(
          'appo_catch', 2000, 100, .9, flags=picture),
      'appo_catch_picture_raw': Recipe(
          'appo_catch', 2000, 100, 0, is_limit=True,
          flags=(*picture, '--normalise_observations=none')),
      'appo_target': Recipe('appo_target', 10_000, 100, -.5),
      'appo_large_target': Recipe('appo_target', 10_000, 100, -500, flags=(
          '--level_name=toy_variants:LargeTarget-v0',)),
      'appo_pattern': Recipe('impala_pattern', 20_000, 100, 9.9, flags=(
          '--algorithm=appo', '--passes=2')),
      'appo_memory': Recipe('memory', 10_000, 100, .95, flags=(
          '--algorithm=appo', '--passes=2')),
      'appo_cartpole': Recipe('appo_cartpole', 10_000, 20, 475, 'best')}


def _of_memory() -> dict[str, Recipe]:
  """Returns the recipes of levels that need a memory, and their baselines."""
  delays = lambda algorithm, delay, num_frames: _cue(
      algorithm, f'memory_{delay}', (
          '--level_name=memory', f'--environment_kwargs={{"delay": {delay}}}'),
      delay, num_frames, .2)
  recipes = {}
  for algorithm in ('ddqn', 'sac', 'mpo'):
    recipes |= delays(algorithm, 5, 20_000)
  recipes |= delays('ddqn', 10, 30_000) | delays('sac', 10, 60_000)
  recipes |= delays('ddqn', 20, 30_000)
  for length in (20, 50):
    recipes |= _cue(
        'ddqn', f'tmaze_{length}', (f'--level_name=tmaze_{length}',),
        length + 2, 100_000, .6, 'best')
  for algorithm in ('sac', 'td3', 'ddpg', 'mpo'):
    recipes |= _with_and_without(
        f'{algorithm}_pendulum_position', Recipe(
            f'{algorithm}_pendulum', 5000, 100, -250, flags=(
                '--level_name=pendulum_position',
                '--total_environment_frames=50000',
                '--target_update_rate=0.01')),
        -400, '--batch_size=16', '--updates_per_step=0.25')
  for algorithm in ('ddqn', 'sac', 'mpo'):
    recipes |= _with_and_without(
        f'{algorithm}_cartpole_position', Recipe(
            f'{algorithm}_cartpole', 10_000, 20, 475, 'best', flags=(
                '--level_name=cartpole_position', '--updates_per_step=0.125',
                '--n_step=5', '--total_environment_frames=100000',
                *(['--target_update_period=100']
                  if algorithm == 'ddqn' else []))),
        200, '--batch_size=32', '--unroll_length=10', '--lstm_units=64')
  return recipes


RECIPES = {
    **{f'{name}_pendulum': Recipe(f'{name}_pendulum', 2500, 100, -200)
       for name in ('sac', 'td3', 'ddpg', 'mpo')},
    # A toy, with the settings of Pendulum. The best return is 0, the middle of
    # the box has -14.
    **{f'{name}_target': Recipe(
        f'{name}_pendulum', 1000, 100, -0.5, flags=(
            '--level_name=target', '--total_environment_frames=10000',
            *(['--initial_scale=0.2'] if name == 'mpo' else [])))
       for name in ('sac', 'td3', 'ddpg', 'mpo')},
    'impala_target': Recipe(
        'impala_pendulum', 10_000, 100, -0.5, flags=(
            '--level_name=target', '--total_environment_frames=100000',
            '--reward_clipping=none', '--nobootstrap_truncated')),
    **{f'{name}_cartpole': Recipe(f'{name}_cartpole', 5000, 20, 475, 'best')
       for name in ('ddqn', 'sac', 'mpo')},
    **{f'{name}_catch': Recipe(f'{name}_catch', 2500, 100, 0.95)
       for name in ('ddqn', 'sac', 'mpo')},
    'ddqn_bit_flipping': Recipe(
        'ddqn_bit_flipping', 10_000, 100, 0.95, 'success'),
    'ddqn_bit_flipping_without_hindsight': Recipe(
        'ddqn_bit_flipping', 10_000, 100, 0.05, 'success', True,
        ('--hindsight=none',)),
    'td3_inverted_pendulum': Recipe(
        'td3_inverted_pendulum', 10_000, 20, 1000),
    'ddqn_pong': Recipe('ddqn_pong', 400_000, 10, 15),
    'ddqn_lunar_lander': Recipe('ddqn_lunar_lander', 10_000, 50, 150),
    'sac_half_cheetah': Recipe('sac_half_cheetah', 10_000, 10, 4500),
    'td3_half_cheetah': Recipe('td3_half_cheetah', 10_000, 10, 4500),
    'mpo_half_cheetah': Recipe('mpo_half_cheetah', 10_000, 10, 4500),
    'sac_fetch_reach': Recipe('sac_fetch_reach', 5000, 100, -2),
    **{name: Recipe(name, 10_000, 100, 0.95) for name in ('catch', 'memory')},
    'vizdoom_basic': Recipe('vizdoom_basic', 200_000, 50, 50),
    'impala_pendulum': Recipe('impala_pendulum', 50_000, 100, -250),
    **_of_appo(),
    **_of_memory(),
    'impala_pattern': Recipe('impala_pattern', 20_000, 100, 9.9),
    **{name: Recipe(name, 20_000, 50, 475, 'best')
       for name in ('cartpole', 'impala_cartpole_replay')},
}


class Cell(NamedTuple):
  """One run of experiment.py; for `ablation.run_all`."""
  name: str
  seed: int

  @property
  def recipe(self) -> Recipe:
    return RECIPES[self.name]

  def directory(self, out: pathlib.Path) -> pathlib.Path:
    return out / self.name / f'seed{self.seed}'

  def flags(self, common: list[str]) -> list[str]:
    recipe = self.recipe
    return [f'--recipe={recipe.file}', *recipe.flags,
            f'--eval_every_frames={recipe.every_frames}',
            f'--eval_num_episodes={recipe.num_episodes}', '--test_greedy',
            *common, f'--seed={self.seed}']


def summarise(name: str, curves: dict[int, list[evaluations.Evaluation]],
              num_frames: int) -> dict:
  """Returns the results of a recipe, by name."""
  recipe = RECIPES[name]
  values = [recipe.value(curve) for curve in curves.values()]
  ends = [curve[-1] for curve in curves.values()]
  return {
      'name': name, 'frames': num_frames, 'seeds': list(curves), 'of':
      recipe.of, 'values': values, 'interval': ablation.interval(values),
      'median': statistics.median(values), 'mark': recipe.mark,
      'num_reached': sum(map(recipe.is_reached, values)),
      'frames_to_mark': [_frames_to_mark(recipe, curve)
                         for curve in curves.values()],
      'frames_per_s': statistics.median(
          end.num_env_frames / max(end.train_time_s, 1e-9) for end in ends),
      'curves': [[(e.num_env_frames, e.train_time_s, e.mean) for e in curve]
                 for curve in curves.values()]}


def _frames_to_mark(recipe, curve):
  """Returns the frames of the first evaluation at the mark.

  None if there is none, or if the mark is a limit.
  """
  if recipe.is_limit:
    return None
  return next((curve[i].num_env_frames for i in range(len(curve))
               if recipe.is_reached(recipe.value(curve[:i + 1]))), None)


def table(rows: list[dict]) -> str:
  """Returns the rows in Markdown."""
  lines = ['| recipe | frames | counts | each seed | median | mean | mark | '
           'reached | first at the mark, frames | frames/s |',
           '|---|---:|---|---|---:|---|---:|---|---|---:|']
  for row in rows:
    recipe = RECIPES[row['name']]
    number = lambda x: f'{x:,.3g}' if abs(x) < 10 else f'{x:,.0f}'
    interval = [number(x) for x in row['interval'] if x is not None]
    mean = interval[0] + (
        f' ({interval[1]} to {interval[2]})' if interval[1:] else '')
    lines.append(
        f'| {row["name"]} | {row["frames"]:,} | {row["of"]} | '
        f'{", ".join(map(number, row["values"]))} | {number(row["median"])} | '
        f'{mean} | {"<=" if recipe.is_limit else ">="} {number(row["mark"])} |'
        f' {row["num_reached"]} of {len(row["seeds"])} | '
        + ', '.join('-' if frames is None else f'{frames:,}'
                    for frames in row['frames_to_mark']) + ' | '
        f'{row["frames_per_s"]:,.0f} |')
  return '\n'.join(lines) + '\n'


def plot(row: dict, path: pathlib.Path) -> None:
  """Draws the mean over seeds of the evaluations, with its interval."""
  import matplotlib
  matplotlib.use('Agg')
  from matplotlib import pyplot as plt
  length = min(map(len, row['curves']))
  curves = np.array([curve[:length] for curve in row['curves']])
  frames = np.mean(curves[:, :, 0], 0) / 1000
  intervals = [ablation.interval(list(at)) for at in curves[:, :, 2].T]
  means = [i.mean for i in intervals]
  figure, axis = plt.subplots(figsize=(6, 4))
  line, = axis.plot(frames, means, marker='.')
  if len(curves) > 1:
    axis.fill_between(
        frames, [i.low for i in intervals], [i.high for i in intervals],
        alpha=0.2, color=line.get_color(), linewidth=0)
  if row['of'] != 'success':
    axis.axhline(row['mark'], color='grey', linestyle=':')
  axis.set_title(f'{row["name"]}, {len(curves)} seeds')
  axis.set_xlabel('environment frames [thousand]')
  axis.set_ylabel('return of evaluations, mean and 95 % interval')
  axis.grid(alpha=0.3)
  figure.tight_layout()
  figure.savefig(path, dpi=110)
  plt.close(figure)


def report(cells: list[Cell], out: pathlib.Path, common: list[str]) -> None:
  """Writes the files about the runs that are there."""
  curves: dict[str, dict[int, list[evaluations.Evaluation]]] = {}
  num_frames = {}
  for cell in cells:
    if ablation.is_finished(cell, out, common):
      directory = str(cell.directory(out))
      curves.setdefault(cell.name, {})[cell.seed] = evaluations.read(directory)
      settings = config_lib.trained_with(directory)
      num_frames[cell.name] = settings.total_environment_frames
  rows = [summarise(name, by_seed, num_frames[name])
          for name, by_seed in curves.items()]
  load = ', '.join(f'{x:.1f}' for x in os.getloadavg())
  text = (f'{table(rows)}\nLoad at the end: {load} (1, 5, 15 minutes) on '
          f'{len(os.sched_getaffinity(0))} cores.\n')
  (out / 'learning.md').write_text(text)
  (out / 'learning.json').write_text(json.dumps([
      {**row, 'interval': row['interval']._asdict()} for row in rows],
                                                indent=1))
  for row in rows:
    plot(row, out / f'{row["name"]}.png')
  print(text, end='')


def main() -> None:
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--out', required=True, type=pathlib.Path)
  parser.add_argument(
      '--runs', default=','.join(RECIPES),
      help=f'comma-separated, all if not given: {", ".join(RECIPES)}')
  parser.add_argument('--seeds', type=int, default=3, help='seeds 1, 2, ...')
  parser.add_argument('--jobs', type=int, default=1, help='runs at a time')
  parser.add_argument('--timeout_s', type=float, default=36_000,
                      help='seconds that a run may take')
  parser.add_argument('--kills', type=int, default=0,
                      help='how often each run is killed, and goes on')
  parser.add_argument('flags', nargs='*', metavar='FLAGS',
                      help='flags of experiment.py, after --')
  args = parser.parse_args()
  names = args.runs.split(',')
  for name in set(names) - {*RECIPES}:
    parser.error(f'Unknown recipe {name}: use some of {", ".join(RECIPES)}.')
  os.environ['PYTHONPATH'] = os.pathsep.join(  # For toy_variants.
      [str(_ROOT / 'benchmarks'),
       *filter(None, [os.environ.get('PYTHONPATH')])])
  # Ends by way of `finally`, which stops all running programs.
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
  out = args.out.absolute()
  if args.kills:
    out = out / f'{args.kills}_kills'
  # By recipe first: a recipe that fails is known soon.
  cells = [Cell(name, seed) for name in names
           for seed in range(1, args.seeds + 1)]
  failures = ablation.run_all(
      [c for c in cells if not ablation.is_finished(c, out, args.flags)], out,
      args.flags, args.jobs, args.timeout_s, args.kills)
  report(cells, out, args.flags)
  for failure in failures:
    print(f'Failed: {failure}', file=sys.stderr)
  sys.exit(1 if failures else 0)


if __name__ == '__main__':
  main()
