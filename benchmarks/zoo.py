# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Makes an agent of the zoo, with its card, from a log directory.

  python benchmarks/zoo.py NAME LOGDIR [--episodes=100] [--greedy=true|false] \\
      [--beside=TEXT]

Writes the folder `scalable_agent/zoo/NAME`:

* the weights as float16: those of `LOGDIR/best` if the best evaluation is
  better than the last one, otherwise the latest weights;
* the settings, where video mode records one game;
* a card with the score of the float16 weights in `--episodes` whole games.

`--greedy` replaces the setting `test_greedy`, also for later tests and videos
of the agent. `--beside` names programs that ran beside the training.
"""

import argparse
import dataclasses
from importlib import metadata
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT))
from scalable_agent import zoo
from scalable_agent.modes import loading
from scalable_agent.runs import checkpointing
from scalable_agent.runs import messages
from scalable_agent.runs import weights
from scalable_agent.scores import table
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_PACKAGES = ('ale-py', 'box2d', 'gymnasium', 'gymnasium-robotics', 'minigrid',
             'mujoco', 'numpy', 'tensorflow', 'vizdoom')


def command(config: config_lib.Config) -> str:
  """Returns the command of a training: all flags that are not defaults."""
  given = {name: getattr(config, name)
           for name in ('algorithm', 'level_name', 'logdir')}
  for _ in range(2):  # Flags of the first round change defaults of others.
    default = config_lib.Config(**given)
    given |= {field.name: getattr(config, field.name)
              for field in dataclasses.fields(config)
              if getattr(config, field.name) != getattr(default, field.name)}
  return 'python experiment.py ' + ' '.join(
      '--' + shlex.quote(
          f'{name}={str(value).lower() if isinstance(value, bool) else value}')
      for name, value in given.items())


def make(name: str, logdir: str, folder: str, episodes: int,
         greedy: bool | None, beside: str) -> zoo.Card:
  """Writes the folder of an agent; returns the card."""
  trained = loading.trained_config(logdir)
  if messages.best_is_better(logdir):
    logdir = os.path.join(logdir, 'best')
  loaded = loading.load(logdir)
  # The directory of the training is of no use on another machine.
  trained = dataclasses.replace(trained, logdir=f'/tmp/{name}')
  config = dataclasses.replace(
      trained, video_num_episodes=1,
      test_greedy=trained.test_greedy if greedy is None else greedy)
  os.makedirs(folder, exist_ok=True)
  weights.save(folder, loaded.agent, loaded.num_env_frames)
  for file in 'spec.json', 'agent.json':
    _write(folder, file, json.loads(
        pathlib.Path(logdir, file).read_text(encoding='utf-8')))
  _write(folder, 'settings.json', dataclasses.asdict(config))
  returns = loading.load(folder).play(num_episodes=episodes)
  row = table.make_row(config.level_name, returns)
  card = zoo.Card(
      level=config.level_name, algorithm=config.algorithm,
      num_env_frames=loaded.num_env_frames, command=command(trained),
      minutes=round(_minutes(logdir), 1),
      training=f'{_processor()}; {beside}',
      mean=row.mean, low=row.interval[0], high=row.interval[1],
      greedy=bool(config.test_greedy), seed=config.seed,
      returns=row.returns, commit=_commit(),
      versions={package: metadata.version(package) for package in _PACKAGES})
  _write(folder, zoo.CARD, dataclasses.asdict(card))
  return card


def _write(folder: str, file: str, values: object) -> None:
  pathlib.Path(folder, file).write_text(
      json.dumps(values, indent=1) + '\n', encoding='utf-8')


def _minutes(logdir: str) -> float:
  """Returns the training time of the latest checkpoint."""
  reader = tf.train.load_checkpoint(checkpointing.latest_checkpoint(logdir))
  return float(reader.get_tensor(
      'train_time_s/.ATTRIBUTES/VARIABLE_VALUE')) / 60


def _processor() -> str:
  text = pathlib.Path('/proc/cpuinfo').read_text(encoding='utf-8')
  names = re.findall(r'^model name\s*: (.+)$', text, re.M)
  return f'{len(names)} cores of {names[0]}'


def _commit() -> str:
  return subprocess.run(
      ['git', 'rev-parse', '--short=10', 'HEAD'], cwd=_ROOT, text=True,
      stdout=subprocess.PIPE, check=True).stdout.strip()


def main() -> None:
  """Makes the agent that the command line names."""
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('name')
  parser.add_argument('logdir')
  parser.add_argument('--episodes', type=int, default=100)
  parser.add_argument('--greedy', type=lambda text: text == 'true')
  parser.add_argument('--beside', default='nothing ran beside the training')
  args = parser.parse_args()
  card = make(args.name, args.logdir,
              str(_ROOT / 'scalable_agent' / 'zoo' / args.name), args.episodes,
              args.greedy, args.beside)
  print(f'{args.name}: mean {card.mean:.2f}, interval {card.low:.2f} to '
        f'{card.high:.2f}, {args.episodes} games')


if __name__ == '__main__':
  main()
