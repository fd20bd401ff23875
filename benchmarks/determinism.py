# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Shows that deterministic runs have the same weights, bit for bit.

  python benchmarks/determinism.py --out=DIRECTORY [--runs=cartpole,...]
      [--repeats=3] [--kills=2]

Each recipe is trained `--repeats` times, the last time while other processes
keep all cores busy. Then the recipe is trained once more, with `kill -9` at
random moments, and resumed each time. Each kill comes after a new checkpoint.
All weights, slots of optimizers and counters in all checkpoints that are kept
must be equal to those of the first run.
"""

import argparse
import multiprocessing
import os
import pathlib
import random
import signal
import sys
import time

_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT), str(_ROOT / 'benchmarks')]
from scalable_agent.processes import programs

_POLL_S = 0.1
_LONGEST_LIFE_S = 6.  # After a checkpoint.
RUNS = {
    'cartpole': ['--recipe=cartpole',
                 '--total_environment_frames=100000',
                 '--save_checkpoint_frames=25000'],
    'pong_shallow': ['--recipe=pong_two_cores',
                     '--total_environment_frames=120000',
                     '--save_checkpoint_frames=40000'],
    'deep_lstm': ['--level_name=ALE/Pong-v5', '--agent=deep', '--use_lstm',
                  '--num_actors=4', '--batch_size=4', '--unroll_length=20',
                  '--total_environment_frames=12000',
                  '--save_checkpoint_frames=4000'],
    'sac': ['--recipe=sac_pendulum',
            '--total_environment_frames=6000',
            '--save_checkpoint_frames=2000'],
    'ddqn_prioritised': [
        '--algorithm=ddqn', '--level_name=catch', '--selector=prioritised',
        '--total_environment_frames=9000', '--save_checkpoint_frames=3000'],
    'catch': [
        '--level_name=catch', '--num_actors=4', '--batch_size=4',
        '--unroll_length=20', '--total_environment_frames=6000',
        '--save_checkpoint_frames=2000'],
}


def command(name: str, logdir: pathlib.Path) -> list[str]:
  """Returns the command that trains a recipe."""
  return [sys.executable, str(_ROOT / 'experiment.py'), *RUNS[name],
          '--deterministic', '--num_actor_groups=1', f'--logdir={logdir}']


def train(name: str, logdir: pathlib.Path, num_kills: int = 0,
          rng: random.Random | None = None) -> float:
  """Trains to the end; returns the seconds it took.

  Args:
    name: the name of the recipe.
    logdir: the log directory.
    num_kills: the number of times that the program is killed and restarted.
    rng: draws the moments of the kills.
  """
  if logdir.exists():
    sys.exit(f'{logdir} is there: use another --out.')
  rng = rng or random.Random(0)
  start_s = time.monotonic()
  for _ in range(num_kills):
    _train_and_kill(name, logdir, rng)
  child = _start(name, logdir)
  try:
    if child.wait():
      sys.exit(f'{name} failed: see {logdir}/log.txt.')
  finally:
    child.kill()
  return time.monotonic() - start_s


def _start(name, logdir):
  return programs.start(command(name, logdir), logdir)


def _train_and_kill(name, logdir, rng):
  """Kills the program a random time after a new checkpoint."""
  before = _latest(logdir)
  child = _start(name, logdir)
  try:
    while _latest(logdir) == before:
      if child.poll() is not None:
        sys.exit(f'{name} has ended before it was killed: see '
                 f'{logdir}/log.txt.')
      time.sleep(_POLL_S)
    time.sleep(rng.uniform(0, _LONGEST_LIFE_S))
    if child.poll() is not None:
      sys.exit(f'{name} has ended before it was killed: it is too short.')
  finally:
    child.kill()
    child.wait()


def _latest(logdir):
  """Returns the number of the latest checkpoint, -1 without one."""
  return max((int(path.stem.split('-')[1])
              for path in logdir.glob('ckpt-*.index')), default=-1)


def variables(logdir: pathlib.Path) -> dict[str, bytes]:
  """Returns all that is in the checkpoints, but for the time."""
  import tensorflow as tf
  found = {}
  for index in logdir.glob('ckpt-*.index'):
    reader = tf.train.load_checkpoint(str(index.with_suffix('')))
    found |= {f'{index.stem}: {name}': reader.get_tensor(name).tobytes()
              for name in reader.get_variable_to_shape_map()
              if not name.startswith(('train_time_s', '_CHECKPOINTABLE',
                                      'save_counter'))}
  return found


def _keep_busy():
  while True:
    pass


def main() -> None:
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--out', required=True, type=pathlib.Path)
  parser.add_argument('--runs', default='cartpole,pong_shallow,deep_lstm',
                      help=', '.join(RUNS))
  parser.add_argument('--repeats', type=int, default=3)
  parser.add_argument('--kills', type=int, default=2)
  args = parser.parse_args()
  # `sys.exit` runs the `finally` that ends the programs.
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
  is_equal = True
  for name in args.runs.split(','):
    found, seconds = {}, {}
    for i in range(args.repeats):
      is_loaded = i and i == args.repeats - 1
      others = [multiprocessing.Process(target=_keep_busy, daemon=True)
                for _ in range(os.cpu_count() or 1) if is_loaded]
      label = f'run {i + 1}' + (', busy cores' if is_loaded else '')
      try:
        for process in others:
          process.start()
        seconds[label] = train(name, args.out / name / f'run{i + 1}')
      finally:
        for process in others:
          process.kill()
      found[label] = variables(args.out / name / f'run{i + 1}')
    label = f'{args.kills} kills'
    seconds[label] = train(
        name, args.out / name / 'killed', args.kills, random.Random(name))
    found[label] = variables(args.out / name / 'killed')
    first = found['run 1']
    for label, other in found.items():
      different = [key for key in first.keys() | other.keys()
                   if first.get(key) != other.get(key)]
      is_equal &= not different
      print(f'{name}, {label}: {len(first) - len(different)} of {len(first)} '
            f'variables equal, {seconds[label]:.0f} s', flush=True)
  sys.exit(0 if is_equal else 1)


if __name__ == '__main__':
  main()
