# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Environments of users, beside stable-baselines3 at equal frames.

  python benchmarks/own_problems.py --out=DIRECTORY [--only=pricing,taxi]
      [--seeds=1] [--torch=torch==2.13.0+cpu] [--wrappers]

Ours is trained by the command that `--mode=check` proposes, with another number
of frames and a seed, and without a further flag. stable-baselines3 has the
defaults of its PPO and, for continuous actions, of its SAC. With `--wrappers`,
both are also trained with RescaleAction and VecNormalize. stable-baselines3 has
a virtual environment of its own, see venvs.py.

The result of a run is the mean return of the last policy, over the same number
of episodes, with the most likely actions if not said otherwise. `+-` is the
standard error over the seeds, or of one seed over its episodes, though seeds
differ by more. Ours is better or worse than the best one of stable-baselines3
if the means differ by more than two standard errors of the difference, else
equal. Seconds are those of the training; the programs take turns. Writes
own_problems.json after each run, and own_problems.md; a run that is in the file
is not run again.
"""

import argparse
from collections.abc import Sequence
import json
import os
import pathlib
import shlex
import signal
import statistics
import subprocess
import sys
import time
from typing import Any, NamedTuple

_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT), str(_ROOT / 'benchmarks')]
from scalable_agent.modes import running
from scalable_agent.processes import programs as programs_lib
from scalable_agent.scores import evaluations
import venvs

# Of environments; our own Python needs these packages, too.
_PACKAGES = ('flappy-bird-gymnasium==0.4.0', 'highway-env==1.12.1',
             'gymnasium-cartpole-swingup==0.1.8',
             'gymnasium-robotics==1.4.2', 'gymnasium-snake-game==0.2.1',
             'minigrid==3.2.0')
# These ask for an older gymnasium, and work with a newer one.
_OLD_PACKAGES = ('gymnasium-2048==0.1.2', 'gymnasium-mars-lander==2.1.0')
_REQUIREMENTS = ('stable-baselines3==2.9.2',
                 'gymnasium[box2d,mujoco,toy-text]', 'mujoco==3.3.7',
                 *_PACKAGES)
_CHECK_TIMEOUT_S = 600
_WORKER = _ROOT / 'benchmarks' / 'peers' / 'sb3_own_problems.py'


class Problem(NamedTuple):
  """An environment, its number of frames, and its evaluation."""
  level: str
  frames: int
  is_continuous: bool = False
  kwargs: dict[str, Any] = {}
  episodes: int = 50
  is_greedy: bool = True


PROBLEMS = {
    'inventory': Problem('examples.shop:shop/Inventory-v0', 100_000),
    'pricing': Problem('examples.shop:shop/Pricing-v0', 20_000, True),
    'mountain_car_continuous': Problem(
        'MountainCarContinuous-v0', 20_000, True),
    'acrobot': Problem('Acrobot-v1', 60_000),
    'lunar_lander': Problem('LunarLander-v3', 100_000),
    'lunar_lander_continuous': Problem(
        'LunarLander-v3', 20_000, True, {'continuous': True}),
    'pendulum': Problem('Pendulum-v1', 10_000, True),
    'hopper': Problem('Hopper-v5', 20_000, True),
    'taxi': Problem('Taxi-v4', 150_000),
    'maze': Problem('examples.maze:Maze-v0', 60_000),
    'inverted_double_pendulum': Problem(
        'InvertedDoublePendulum-v5', 10_000, True),
    'slow_resets': Problem(
        'benchmarks.slow_resets:SlowResets-v0', 10_000),
    'highway': Problem('highway_env:highway-fast-v0', 6_000),
    'flappy_bird': Problem(
        'flappy_bird_gymnasium:FlappyBird-v0', 100_000, False,
        {'use_lidar': False}),
    'reacher': Problem('Reacher-v5', 10_000, True),
    'frozen_lake': Problem('FrozenLake-v1', 50_000),
    'pictures': Problem('benchmarks.pictures:Pictures-v0', 50_000),
    'cartpole_swingup': Problem(
        'gymnasium_cartpole_swingup:CartPoleSwingUp-v0', 20_000, True),
    'mars_lander': Problem(
        'gymnasium_mars_lander:gymnasium_mars_lander/MarsLander-v1', 20_000,
        True),
    # The most likely action may change nothing, for ever.
    '2048': Problem(
        'gymnasium_2048:gymnasium_2048/TwentyFortyEight-v0', 100_000, False,
        {'max_episode_steps': 2000}, is_greedy=False),
    'snake': Problem('gymnasium_snake_game:Snake-v1', 100_000, False,
                     {'max_episode_steps': 2000}, is_greedy=False),
    'fetch_reach': Problem('gymnasium_robotics:FetchReach-v4', 10_000, True),
}


class Result(NamedTuple):
  """The evaluation of the last policy of a run."""
  problem: str
  program: str
  seed: int
  frames: int
  seconds: float
  returns: list[float]
  recipe: str = ''

  @property
  def mean(self) -> float:
    return statistics.fmean(self.returns)


def proposed(problem: Problem, directory: pathlib.Path) -> list[str]:
  """Returns the flags that `--mode=check` proposes."""
  kwargs = ([f'--environment_kwargs={json.dumps(problem.kwargs)}']
            if problem.kwargs else [])
  with running.start(['--mode=check', f'--level_name={problem.level}', *kwargs],
                     directory) as program:
    program.wait(_CHECK_TIMEOUT_S)
  text = (directory / 'log.txt').read_text().replace('\\\n', ' ')
  command = [line for line in text.splitlines() if '--recipe=' in line]
  if not command:
    raise RuntimeError(f'No recipe was proposed: see {directory}/log.txt')
  return [word for word in shlex.split(command[-1])
          if word.startswith('--') and not word.startswith('--logdir')]


def ours(name: str, seed: int, out: pathlib.Path,
         args: argparse.Namespace) -> Result:
  """Trains by the proposed command."""
  problem = PROBLEMS[name]
  directory = out / name / f'{seed}_{os.getpid()}'
  flags = proposed(problem, directory / 'check')
  frames = int(problem.frames * args.share)
  with running.start([
      *flags, f'--total_environment_frames={frames}', f'--seed={seed}',
      f'--eval_every_frames={frames}',
      f'--test_greedy={str(problem.is_greedy).lower()}',
      f'--eval_num_episodes={problem.episodes}'], directory / 'train') as run:
    try:
      run.wait(args.timeout_s)
    finally:
      programs_lib.stop(run)
  if run.returncode or not running.is_at_end(
      programs_lib.output(directory / 'train')):
    raise RuntimeError(f'See {directory}/train/log.txt')
  last = evaluations.read(str(directory / 'train'))[-1]
  return Result(name, 'ours', seed, last.num_env_frames, last.train_time_s,
                [float(r) for r in last.returns],
                flags[0].removeprefix('--recipe='))


def peer(name: str, program: str, seed: int, python: str,
         args: argparse.Namespace) -> Result:
  """Trains with stable-baselines3."""
  problem = PROBLEMS[name]
  algorithm, *wrappers = program.split('+')
  settings = {
      'level': problem.level, 'kwargs': problem.kwargs, 'algorithm': algorithm,
      'frames': int(problem.frames * args.share), 'seed': seed,
      'episodes': problem.episodes, 'is_greedy': problem.is_greedy,
      'torch_threads': args.torch_threads, 'is_normalised': bool(wrappers)}
  done = subprocess.run(
      [python, str(_WORKER), json.dumps(settings)], cwd=_ROOT, check=False,
      env={**os.environ, 'PYTHONPATH': str(_ROOT)}, timeout=args.timeout_s,
      text=True, capture_output=True)
  if done.returncode:
    last = done.stderr.strip().splitlines()[-1:]
    raise RuntimeError(*last or [f'The program ended with {done.returncode}.'])
  found = json.loads(done.stdout.splitlines()[-1])
  return Result(name, program, seed, found['frames'], found['seconds'],
                found['returns'])


def table(results: Sequence[Result]) -> str:
  """Returns the results in Markdown."""
  cells: dict[str, dict[str, list[Result]]] = {}
  for result in results:
    cells.setdefault(result.problem, {}).setdefault(
        result.program, []).append(result)
  programs = list(dict.fromkeys(result.program for result in results))
  lines = ['| problem | frames | recipe | ' + ' | '.join(programs) +
           ' | ours is |', '|---|---:|---|' + '---:|' * len(programs)
           + '---|']
  verdicts = []
  for name, by_program in cells.items():
    means = {program: _mean_and_error(found)
             for program, found in by_program.items()}
    verdict = ''
    if 'ours' in means and len(means) > 1:
      mean, error = means.pop('ours')
      other, other_error = max(means.values())
      noise = 2 * (error**2 + other_error**2)**.5
      verdict = ('equal' if abs(mean - other) <= noise else
                 'better' if mean > other else 'worse')
      verdicts.append(verdict)
    num_frames = min(found[0].frames for found in by_program.values())
    recipe = by_program['ours'][0].recipe if 'ours' in by_program else ''
    lines.append(
        f'| {name} | {num_frames:,} | `{recipe}` | ' + ' | '.join(
            _cell(by_program.get(program, [])) for program in programs)
        + f' | {verdict} |')
  counts = ', '.join(f'{verdicts.count(verdict)} {verdict}'
                     for verdict in ('better', 'equal', 'worse'))
  return '\n'.join(lines) + f'\n\nOurs: {counts}.\n'


def _mean_and_error(found: Sequence[Result]) -> tuple[float, float]:
  returns = ([result.mean for result in found] if len(found) > 1
             else found[0].returns)
  return (statistics.fmean(returns),
          statistics.stdev(returns) / len(returns)**.5)


def _cell(found: Sequence[Result]) -> str:
  if not found:
    return '-'
  mean, error = _mean_and_error(found)
  digits = 2 if max(abs(x) for r in found for x in r.returns) < 10 else 0
  return (f'{mean:,.{digits}f} +- {error:,.{digits}f} '
          f'({statistics.fmean(r.seconds for r in found):.0f} s)')


def main() -> None:
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--out', required=True, type=pathlib.Path)
  parser.add_argument('--only', default=','.join(PROBLEMS),
                      help='comma-separated names of problems')
  parser.add_argument('--seeds', type=int, default=1, help='seeds 1, 2, ...')
  parser.add_argument('--wrappers', action='store_true')
  parser.add_argument('--share', type=float, default=1.,
                      help='share of the frames, for a trial of the programs')
  parser.add_argument('--timeout_s', type=float, default=3600,
                      help='seconds that a run may take')
  venvs.add_arguments(parser)
  parser.add_argument('--torch_threads', type=int, default=2)
  args = parser.parse_args()
  names = args.only.split(',')
  for name in set(names) - {*PROBLEMS}:
    parser.error(f'Unknown {name}: use some of {", ".join(PROBLEMS)}.')
  # Ends by way of `finally`, which stops a running program.
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
  out = args.out.absolute()
  out.mkdir(parents=True, exist_ok=True)
  python = venvs.make(pathlib.Path(args.venvs) / 'own_problems',
                      [args.torch, *_REQUIREMENTS], _OLD_PACKAGES)
  file = out / 'own_problems.json'
  results = [Result(**row) for row in json.loads(file.read_text())
             ] if file.exists() else []
  failures = []
  for seed in range(1, args.seeds + 1):
    for name in names:
      algorithms = ['PPO', *['SAC'] * PROBLEMS[name].is_continuous]
      for program in ['ours', *algorithms, *(
          f'{a}+wrappers' for a in algorithms if args.wrappers)]:
        if any((r.problem, r.program, r.seed) == (name, program, seed)
               for r in results):
          continue
        start_s = time.monotonic()
        try:
          results.append(ours(name, seed, out, args)
                         if program == 'ours' else
                         peer(name, program, seed, python, args))
        except (RuntimeError, subprocess.TimeoutExpired) as e:
          failures.append(f'{name}, {program}: {e}')
          continue
        file.write_text(json.dumps([r._asdict() for r in results], indent=1))
        print(f'{name}, {program}, seed {seed}: {results[-1].mean:,.2f} '
              f'({time.monotonic() - start_s:.0f} s with start and test)',
              flush=True)
  load = ', '.join(f'{x:.1f}' for x in os.getloadavg())
  text = (f'{table(results)}\nLoad at the end: {load} (1, 5, 15 minutes) on '
          f'{len(os.sched_getaffinity(0))} cores.\n')
  (out / 'own_problems.md').write_text(text)
  print(text, end='')
  for failure in failures:
    print(f'Failed: {failure}', file=sys.stderr)
  sys.exit(bool(failures))


if __name__ == '__main__':
  main()
