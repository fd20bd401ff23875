# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Makes a log directory of an agent of the zoo, from which training resumes.

  python benchmarks/from_zoo.py NAME LOGDIR
  python experiment.py --logdir=LOGDIR ...    # The flags of the agent's card.

The zoo keeps weights, mostly as float16, and no numbers of the optimizer, so
training resumes with a new optimizer, at the frames of the agent and their
learning rate. Agents with target networks or critics are refused: the zoo has
no weights of these. benchmarks/reproduction.py calls the device of such a run
`CPU, resumed at N M frames`.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT))
from scalable_agent import algorithms
from scalable_agent import zoo
from scalable_agent.runs import checkpointing
from scalable_agent.runs import choice
from scalable_agent.runs import setup
from scalable_agent.runs import weights
from scalable_agent.settings import config as config_lib


def make(name: str, logdir: pathlib.Path) -> str:
  """Writes a log directory of `zoo:NAME`; returns the checkpoint's path."""
  if logdir.exists() and any(logdir.iterdir()):
    raise SystemExit(f'{logdir} is not empty: use another directory.')
  folder = zoo.folder(zoo.PREFIX + name)
  trained = config_lib.trained_with(folder)
  spec = checkpointing.saved_spec(folder)
  assert trained and spec
  config = dataclasses.replace(trained, logdir=str(logdir))
  learner = setup.make_learner(config, spec)
  if learner.state['unpublished'] or learner.state['targets']:
    raise SystemExit(f'zoo:{name} ({config.algorithm}) lacks weights of its '
                     'training: use an agent of IMPALA or APPO.')
  learner.num_env_frames = weights.restore(folder, learner.agent)
  learner.num_updates = round(
      learner.num_env_frames / config.num_action_repeats
      * choice.updates_per_step(config))
  checkpointer = checkpointing.Checkpointer(
      str(logdir), learner, algorithms.describe(config, spec),
      level=config.level_name)
  checkpointer.train_time_s = zoo.card(name).minutes * 60
  path = checkpointer.save()
  config.save()
  checkpointing.save_spec(str(logdir), spec)
  frames = f'{learner.num_env_frames / 1e6:.1f} M frames'
  (logdir / 'run.json').write_text(
      json.dumps({'device': f'CPU, resumed at {frames}'}))
  return path


def main() -> None:
  """Makes the log directory that the command line names."""
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('name', help='the agent, such as breakout')
  parser.add_argument('logdir', type=pathlib.Path, help='a new directory')
  args = parser.parse_args()
  print(make(args.name, args.logdir.absolute()))


if __name__ == '__main__':
  main()
