# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The worker of benchmarks/device_training.py, without TensorFlow.

  python benchmarks/device_training_worker.py --folder=parts --out=out \\
      --seconds=500 [--resume=EARLIER_OUT] [--num_groups=2]

Needs NumPy, JAX, Gymnasium, ale-py, dm-tree and absl-py. A thread per group of
`E` environments acts with the latest weights, taken at the start of each
unroll. An unroll of a group, `T` steps, is cut into batches of `B`
environments. Frames go to the device once, for the policy step, and stay there
for the update.

Time `t` is as in scalable_agent/experience/structs.py: entry 0 of an unroll is
the last entry of the unroll before.
"""

import argparse
import collections
import csv
import functools
import io
import json
import os
import pathlib
import queue
import signal
import sys
import threading
import time

import jax
from jax import numpy as jnp
import numpy as np

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [_ROOT, os.path.join(_ROOT, 'benchmarks')]
import device_worker
from scalable_agent.acting import interface
from scalable_agent.acting import shares
from scalable_agent.experience import episodes as episodes_lib
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import files

_PRINT_S = 15.0
_SAVE_S = 60.0
_WAIT_S = 1.0
# As in device_training.py.
RATE = 'learning_rate'
COUNTERS = 'num_env_frames', 'num_updates', 'train_time_s'

# Inputs of an update, the version of the weights, finished episodes.
Batch = collections.namedtuple('Batch', 'arrays version episodes')
Weights = collections.namedtuple('Weights', 'version values')


class Program:
  """A program of benchmarks/device.py, whose variables have names."""

  def __init__(self, folder, name):
    path = folder / f'{name}.json'
    meta = json.loads(path.read_text())
    self.variables = meta['variables']
    self.result_names = meta['result_names']
    if not all(self.variables):
      raise SystemExit(f'{path}: a variable without a name.')
    first = len(meta['inputs']) - len(self.variables)
    self._changed = [(result, self.variables[given - first])
                     for result, given in meta['changed']]
    self._function = device_worker.compile_program(
        path.with_suffix('.hlo').read_bytes())

  def __call__(self, arguments, variables):
    """Returns the results, and the new values of changed variables by name.

    Takes the memory of the variables that change.
    """
    results = self._function(
        *arguments, *[variables[name] for name in self.variables])
    return results, {name: results[i] for i, name in self._changed}


@jax.jit
def _sample(key, logits):
  key, used = jax.random.split(key)
  return jax.random.categorical(used, logits).astype(jnp.int32), key


@functools.partial(jax.jit, static_argnums=2)
def batches(steps, on_host, batch_size):
  """Returns the inputs of updates, one list for each batch of an unroll.

  The order of the inputs is that of `structs.Unroll`: reward, done,
  observation, action, policy, baseline, truncation value.

  Args:
    steps: for each field from the observation to the baseline, `T + 1` arrays
      `[E, ...]`.
    on_host: reward and done, `[T + 1, E]`.
    batch_size: the number of environments in a batch.
  """
  arrays = [*on_host, *(jnp.stack(field) for field in steps)]
  arrays.append(jnp.zeros_like(arrays[-1]))
  return [[x[:, i:i + batch_size] for x in arrays]
          for i in range(0, arrays[0].shape[1], batch_size)]


@jax.jit
def _copy(arrays):
  return [array + 0 for array in arrays]


class Group(threading.Thread):
  """Plays the environments of one group until `stop` is set."""

  def __init__(self, env, seed, config, policy, published, inbox, stop):
    super().__init__(daemon=True)
    self._env = env
    self._key = jax.random.key(seed)
    self._config = config
    self._policy = policy
    self._published = published
    self._inbox = inbox
    self._stopping = stop
    self.error = None

  def run(self):
    try:
      self._play()
    except BaseException as e:
      self.error = e
    finally:
      self._env.close()

  def _play(self):
    output = self._env.initial()
    num_actions = self._env.spec.action.num_values[0]
    zeros = np.zeros([self._env.num_envs], np.float32)
    on_host = output.reward.copy(), output.done.copy()
    on_device = [_to_device(output.observation), *jax.device_put([
        zeros.astype(np.int32), np.zeros([len(zeros), num_actions], np.float32),
        zeros])]
    while not self._stopping.is_set():
      weights, finished = self._published(), []
      variables = dict(zip(self._policy.variables, weights.values))
      hosts, devices = [on_host], [on_device]
      for _ in range(self._config.unroll_length):
        (logits, baseline), _ = self._policy([on_device[0]], variables)
        action, self._key = _sample(self._key, logits)
        output = self._env.step(np.asarray(action))
        finished += [
            (self._env.level_names[i], float(output.info.episode_return[i]),
             int(output.info.episode_step[i]))
            for i in np.flatnonzero(output.info.episode_end)]
        on_host = output.reward.copy(), output.done.copy()
        on_device = [_to_device(output.observation), action, logits, baseline]
        hosts.append(on_host)
        devices.append(on_device)
      for arrays in batches(
          list(zip(*devices)), [np.stack(x) for x in zip(*hosts)],
          self._config.batch_size):
        self._put(Batch(arrays, weights.version, finished))
        finished = []

  def _put(self, batch):
    while not self._stopping.is_set():
      try:
        return self._inbox.put(batch, timeout=_WAIT_S)
      except queue.Full:
        continue


def _to_device(observation):
  """Returns a copy: the next step may overwrite the observation.

  Without a copy on the host, the observation is on a GPU before the next step,
  which needs an action, which needs the observation.
  """
  return jax.device_put(observation.copy() if (
      jax.default_backend() == 'cpu') else observation)


class Training:
  """The learner: updates, files, progress."""

  def __init__(self, config, folder, resume, out):
    self._config = config
    self._out = out
    self._update = Program(folder, 'update')
    self.policy = Program(folder, 'policy')
    with np.load((resume or folder) / 'state.npz') as arrays:
      state = dict(arrays)
    self._counters = {name: state.pop(name).item() for name in COUNTERS}
    self._start_s = time.monotonic() - self._counters['train_time_s']
    self._variables = jax.device_put(state)
    self.first_update = self._counters['num_updates']
    self._rows = []
    if resume:
      with open(resume / 'episodes.csv', newline='', encoding='utf-8') as f:
        self._rows = [row for row in list(csv.reader(f))[1:]
                      if int(row[0]) <= self.num_env_frames]
    self._returns = collections.deque(maxlen=100)
    self._lags = collections.deque(maxlen=1000)
    self._publish()

  def published(self):
    return self._weights

  def _publish(self):
    self._weights = Weights(
        self._counters['num_updates'],
        _copy([self._variables[name] for name in self.policy.variables]))

  @property
  def num_env_frames(self):
    return self._counters['num_env_frames']

  def step(self, batch, frames_per_step):
    """Makes an update; returns the scalars by name."""
    config, counters = self._config, self._counters
    total = config.total_environment_frames
    rate = config.learning_rate * max(total - self.num_env_frames, 0) / total
    results, changed = self._update(
        batch.arrays,
        {**self._variables, RATE: jax.device_put(np.float32(rate))})
    self._variables.update(changed)
    self._lags.append(counters['num_updates'] - batch.version)
    counters['num_updates'] += 1
    counters['num_env_frames'] += (
        config.batch_size * config.unroll_length * frames_per_step)
    self._publish()
    for level, value, steps in batch.episodes:
      self._returns.append(value)
      self._rows.append([self.num_env_frames, f'{self._train_time_s():.1f}',
                         level, f'{value:g}', steps, steps * frames_per_step])
    return dict(zip(self._update.result_names, results))

  def learn(self, inbox, groups, stop, seconds, frames_per_step):
    """Learns for some seconds, to the end of the recipe, or until `stop`.

    An error of a group ends the learning; the caller raises the error.
    """
    start = printed = saved = time.monotonic()
    frames = self.num_env_frames
    while (time.monotonic() - start < seconds and not stop.is_set()
           and self.num_env_frames < self._config.total_environment_frames
           and not any(group.error for group in groups)):
      try:
        batch = inbox.get(timeout=_WAIT_S)
      except queue.Empty:
        continue
      scalars = self.step(batch, frames_per_step)
      now = time.monotonic()
      if now - printed >= _PRINT_S:
        self._print(scalars, (self.num_env_frames - frames) / (now - printed))
        printed, frames = now, self.num_env_frames
      if now - saved >= _SAVE_S:
        self.save()
        saved = now
    self.save()

  def _train_time_s(self):
    return time.monotonic() - self._start_s

  def _print(self, scalars, speed):
    mean = np.mean(self._returns) if self._returns else float('nan')
    values = ', '.join(f'{name} {float(scalars[name]):.3g}' for name in (
        'entropy', 'gradient_norm', 'total_loss'))
    print(f'{self.num_env_frames:,} frames, {speed:,.0f} frames/s, return '
          f'{mean:.2f}, lag {np.mean(self._lags):.1f}, {values}', flush=True)

  def save(self):
    """Writes episodes, then the state; nothing if a number is not finite."""
    arrays = {name: np.asarray(x) for name, x in self._variables.items()}
    if not all(np.isfinite(x).all() for x in arrays.values()):
      raise SystemExit('Diverged: a number of the state is not finite. The '
                       'state of the last save is kept.')
    self._counters['train_time_s'] = self._train_time_s()
    text = io.StringIO()
    csv.writer(text, lineterminator='\n').writerows(
        [episodes_lib.FIELDS, *self._rows])
    files.write(str(self._out / 'episodes.csv'), text.getvalue())
    with files.whole(str(self._out / 'state.npz')) as f:
      np.savez(f, **self._counters, **arrays)


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--folder', type=pathlib.Path, required=True,
                      help='the folder of the programs')
  parser.add_argument('--out', type=pathlib.Path, required=True,
                      help='the folder to write the state to')
  parser.add_argument('--resume', type=pathlib.Path,
                      help='the folder of the state of an earlier call')
  parser.add_argument('--seconds', type=float, required=True,
                      help='of training in this call')
  parser.add_argument('--num_groups', type=int, default=2)
  args = parser.parse_args()
  if (args.out / 'state.npz').exists() and args.resume != args.out:
    parser.error(f'--out={args.out} has a state: add --resume={args.out} to '
                 'resume, or use another folder.')
  args.out.mkdir(parents=True, exist_ok=True)
  jax.config.update('jax_enable_x64', True)  # Counters are int64.
  settings = json.loads((args.folder / 'settings.json').read_text())
  num_actors = args.num_groups * settings.pop('envs_per_group')
  if args.resume:
    before = json.loads((args.resume / 'run.json').read_text())['settings']
    if before != settings:
      parser.error(f'{args.resume} was trained with {before}, and '
                   f'{args.folder} is for {settings}.')
  config = config_lib.Config.from_recipe(
      'atari_paper', logdir=str(args.out), **settings, num_actors=num_actors,
      num_actor_groups=args.num_groups)
  training = Training(config, args.folder, args.resume, args.out)
  envs = shares.make_environments(
      config, training.first_update,
      interface.Share(range(config.num_actors)))
  run = {'device': jax.devices()[0].device_kind, 'num_cores': os.cpu_count(),
         'num_actors': num_actors, 'num_actor_groups': args.num_groups,
         'settings': settings}
  (args.out / 'run.json').write_text(json.dumps(run))
  print(f'{run["device"]}, {run["num_cores"]} cores, {config.level_name}, '
        f'{len(envs)} groups of {envs[0].num_envs} environments, '
        f'{training.num_env_frames:,} frames', flush=True)
  inbox, stop = queue.Queue(maxsize=1), threading.Event()
  for number in signal.SIGTERM, signal.SIGINT:
    signal.signal(number, lambda *unused_args: stop.set())
  groups = [
      Group(env, config.derive_seed('actor', i, training.first_update), config,
            training.policy, training.published, inbox, stop)
      for i, env in enumerate(envs)]
  for group in groups:
    group.start()
  try:
    training.learn(inbox, groups, stop, args.seconds,
                   envs[0].spec.num_action_repeats)
  finally:
    stop.set()
    for group in groups:
      group.join(30)
  for group in groups:
    if group.error:
      raise group.error


if __name__ == '__main__':
  main()
