# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Population based training, with ray's Tune; ranges of the IMPALA paper.

  pip install -e '.[pbt]'
  python examples/pbt.py --out=DIRECTORY --population=8 --interval=10000 -- \
      --recipe=catch

Each member of the population is a run in DIRECTORY/members, as `experiment.py`
would make with the flags after `--`. Only the learning rate, the entropy cost
and the optimizer's epsilon differ: their first values are random. After each
interval, members of the worst quarter become copies of members of the best
quarter: weights, curve and settings. Then each setting of the copy is
multiplied by 1.2 or 1/1.2 with a chance of a third. The same command resumes a
stopped population. Each interval begins with new episodes, and only episodes
that end count: an interval should be many episodes of each environment long.

Unlike in the paper (Jaderberg et al. 2017, arXiv 1711.09846; Espeholt et al.
2018, appendix F), only copies change their settings, returns are compared
instead of human normalised scores, and quarters instead of random pairs.

All machines must see DIRECTORY, and have the project at the same path. With
fewer CPUs than the population needs, members take turns.
"""

import argparse
import collections
from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import shutil
import statistics
import sys
import threading
from typing import TYPE_CHECKING

_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT))
from absl import flags
import ray
from ray import tune
from ray.tune import schedulers
from ray.tune import search
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.runs import logdirs
from scalable_agent.settings import config as config_lib

if TYPE_CHECKING:
  from scalable_agent.runs import log as log_lib

# Ranges of appendix D of the IMPALA paper.
RANGES = {'learning_rate': tune.loguniform(5e-6, 5e-3),
          'entropy_cost': tune.loguniform(5e-5, 1e-2),
          'epsilon': tune.choice([1e-1, 1e-3, 1e-5, 1e-7]),
          'seed': tune.randint(0, 2**31 - 1)}
_FACTORS = (1.2, 1 / 1.2)
_CHANCE = 1 / 3
_NUM_RETURNS = 100
# Checkpoints kept per member: a copy may need one from some intervals ago.
_NUM_KEPT = 5


def explore(settings: dict[str, float]) -> dict[str, float]:
  """Returns the settings of a copy: some are changed, and the seed is new."""
  changed = {name: value * random.choice(_FACTORS)
             if random.random() < _CHANCE else value
             for name, value in settings.items()}
  return {**changed, 'seed': random.randrange(2**31 - 1)}


def whole_intervals(frames: int, interval: int) -> int:
  """Returns the last multiple of `interval` up to `frames`.

  Tune compares members at these multiples. If Tune used `frames`, a long
  interval would make the next interval too short.
  """
  return frames // interval * interval


def train_interval(config: config_lib.Config, interval: int
                   ) -> dict[str, float]:
  """Trains up to the next multiple of `interval` frames, or to the end.

  Returns:
    `frames` so far, and `mean_return` of the interval's last episodes.

  Raises:
    ConfigError: no episode has ended.
  """
  # Imported here: the process that watches the members needs no TensorFlow.
  from scalable_agent.runs import training
  stop = threading.Event()
  returns: collections.deque[float] = collections.deque(maxlen=_NUM_RETURNS)
  frames: list[int] = []

  def hook(update: 'log_lib.Update') -> None:
    returns.extend(episode.episode_return for episode in update.episodes)
    frames.append(update.learner.num_env_frames)
    if frames[-1] >= -(-frames[0] // interval) * interval:
      stop.set()

  training.run(config, training.make_acting, stop, hooks=[hook])
  if not frames:
    raise errors.ConfigError(
        f'--logdir={config.logdir} has ended already, without a result.')
  if not returns:
    raise errors.ConfigError(
        f'No episode has ended within {frames[-1] - frames[0]:,} frames: use a '
        'longer --interval.')
  return {'frames': frames[-1], 'mean_return': statistics.fmean(returns)}


def train_member(settings: dict[str, float], config: config_lib.Config,
                 members: str, interval: int) -> None:
  """Trains a member, in the member's own process, which Tune starts.

  Starts from Tune's checkpoint: the member's own, or the checkpoint of the
  member to copy.
  """
  logdir = os.path.join(members, tune.get_context().get_trial_id())
  checkpoint = tune.get_checkpoint()
  if checkpoint:
    shutil.rmtree(logdir, ignore_errors=True)
    checkpoint.to_directory(logdir)
  config = dataclasses.replace(config, logdir=logdir, **settings)
  last = pathlib.Path(logdir, 'last_interval.json')
  last.parent.mkdir(parents=True, exist_ok=True)
  result = json.loads(last.read_text()) if last.exists() else {'frames': 0}
  with open(os.path.join(logdir, 'log.txt'), 'a', encoding='utf-8') as log, \
      contextlib.redirect_stdout(log):
    while True:  # Tune ends the process after the last frame.
      if result['frames'] < config.total_environment_frames:
        result = train_interval(config, interval)
        last.write_text(json.dumps(result))
      whole = whole_intervals(result['frames'], interval)
      tune.report({**result, 'interval_frames': whole},
                  checkpoint=tune.Checkpoint.from_directory(logdir))


@contextlib.contextmanager
def _ray(args: argparse.Namespace) -> Iterator[None]:
  # ray hides no GPUs from processes that ask for none.
  hidden = {} if args.gpus_per_member else {'CUDA_VISIBLE_DEVICES': ''}
  variables = {
      'TF_NUM_INTRAOP_THREADS': str(max(1, int(args.cpus_per_member))),
      'TF_CPP_MIN_LOG_LEVEL': '3', 'TF_FORCE_GPU_ALLOW_GROWTH': 'true',
      'TF_ENABLE_ONEDNN_OPTS': '1',
      'PYTHONPATH': os.pathsep.join(
          [str(_ROOT), *filter(None, [os.environ.get('PYTHONPATH')])]),
      **hidden}
  try:
    ray.init(address=args.ray_address, log_to_driver=False,
             runtime_env={'env_vars': variables})
  except ConnectionError as e:
    raise errors.ConfigError(f'--ray_address={args.ray_address}: {e}') from e
  try:
    yield
  finally:
    ray.shutdown()


def run(args: argparse.Namespace, config: config_lib.Config) -> tune.ResultGrid:
  """Trains or resumes the population; returns the last results."""
  out = args.out.absolute()
  trainable = tune.with_resources(
      tune.with_parameters(train_member, config=config,
                           members=str(out / 'members'),
                           interval=args.interval),
      {'cpu': args.cpus_per_member, 'gpu': args.gpus_per_member})
  if tune.Tuner.can_restore(str(out / 'tune')):
    print(f'Resuming the population of {out}.')
    return tune.Tuner.restore(str(out / 'tune'), trainable,
                              resume_errored=True).fit()
  scheduler = None if args.sweep else schedulers.PopulationBasedTraining(
      time_attr='interval_frames', perturbation_interval=args.interval,
      burn_in_period=args.burn_in, custom_explore_fn=explore)
  return tune.Tuner(
      trainable, param_space=RANGES,
      tune_config=tune.TuneConfig(
          metric='mean_return', mode='max', num_samples=args.population,
          scheduler=scheduler,
          search_alg=search.BasicVariantGenerator(random_state=args.seed)),
      run_config=tune.RunConfig(
          name='tune', storage_path=str(out), verbose=1,
          stop={'frames': config.total_environment_frames},
          checkpoint_config=tune.CheckpointConfig(
              num_to_keep=_NUM_KEPT))).fit()


def report(results: tune.ResultGrid, out: pathlib.Path) -> None:
  """Prints the members, best first, and writes `members.json`."""
  rows = sorted(
      ({'mean_return': r.metrics['mean_return'], 'frames': r.metrics['frames'],
        **{name: value for name, value in r.metrics['config'].items()
           if name in RANGES}, 'logdir': str(
               out / 'members' / r.metrics['trial_id'])}
       for r in results if 'mean_return' in r.metrics),
      key=lambda row: -row['mean_return'])
  (out / 'members.json').write_text(json.dumps(rows, indent=1))
  print('| mean return | frames | learning rate | entropy cost | epsilon | '
        'logdir |\n|---:|---:|---:|---:|---:|---|')
  for row in rows:
    print(f'| {row["mean_return"]:.2f} | {row["frames"]:,} | '
          f'{row["learning_rate"]:.2g} | {row["entropy_cost"]:.2g} | '
          f'{row["epsilon"]:.2g} | {row["logdir"]} |')


def main(argv: Sequence[str] | None = None) -> int:
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--out', required=True, type=pathlib.Path)
  parser.add_argument('--population', type=int, default=24)
  parser.add_argument('--interval', type=int, default=1_000_000,
                      help='frames between two comparisons of the members')
  parser.add_argument('--burn_in', type=int, default=0,
                      help='frames before the first comparison; 20 million in '
                      'the paper')
  parser.add_argument('--sweep', action='store_true',
                      help='make no copies: all members keep their settings')
  parser.add_argument('--seed', type=int, default=1,
                      help='seed of the first settings')
  parser.add_argument('--cpus_per_member', type=float, default=1)
  parser.add_argument('--gpus_per_member', type=float, default=0)
  parser.add_argument('--ray_address', default='local',
                      help='local, auto or HOST:PORT, as in experiment.py')
  parser.add_argument('flags', nargs='*', metavar='FLAGS',
                      help='flags of experiment.py, after --')
  args = parser.parse_args(argv)
  try:
    config = experiment.parse(args.flags)
    # Raises if the algorithm has no such settings.
    dataclasses.replace(config, learning_rate=1e-3, entropy_cost=1e-3,
                        epsilon=1e-3)
  except (errors.UserError, flags.Error) as e:
    parser.error(str(e))
  if config.ray_address or config.mode != 'train':
    parser.error('Members train, in their own processes: leave --mode out, and '
                 'give --ray_address before --.')
  if not config.num_actors:
    parser.error('--num_actors=auto measures an idle machine: give a number.')
  try:
    with logdirs.locked(str(args.out.absolute())), _ray(args):
      results = run(args, config)
  except errors.UserError as e:
    parser.error(str(e))
  report(results, args.out.absolute())
  if any(r.metrics.get('frames', 0) < config.total_environment_frames
         for r in results if not r.error):
    print('Stopped. The same command resumes from the end of the last interval '
          'of each member.')
  for error in results.errors:
    print(f'A member has failed: {str(error).strip().splitlines()[-1]}',
          file=sys.stderr)
  return 1 if results.errors else 0


if __name__ == '__main__':
  sys.exit(main())
