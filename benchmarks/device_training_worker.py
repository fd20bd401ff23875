# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The worker of benchmarks/device_training.py, with NumPy and JAX only.

  python benchmarks/device_training_worker.py --folder=parts --out=out \\
      --seconds=500 [--resume=EARLIER_OUT] [--num_actors=256]

A thread per group of environments acts with the latest weights, taken at the
start of each unroll. An unroll of a group, `T` steps, is cut into batches of
`B` environments. Frames go to the device once, for the policy step, and stay
there for the update.

Time `t` is as in scalable_agent/experience/structs.py: entry 0 of an unroll is
the last entry of the unroll before.
"""

import argparse
import collections
import csv
import functools
import json
import os
import pathlib
import queue
import sys
import threading
import time

import jax
from jax import numpy as jnp
import numpy as np

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, _ROOT)
# pylint: disable=wrong-import-position
import device_worker
from scalable_agent.acting import interface
from scalable_agent.acting import shares
from scalable_agent.experience import episodes as episodes_lib
from scalable_agent.settings import config as config_lib

_PRINT_S = 15.0
_SAVE_S = 60.0
_WAIT_S = 1.0
RATE = 'learning_rate'  # As in device_training.py.

# An unroll on the device, the version of its weights, its finished episodes.
Unroll = collections.namedtuple('Unroll', 'arrays version episodes')
Weights = collections.namedtuple('Weights', 'version values')


class Program:
  """A program of benchmarks/device.py, whose variables have names."""

  def __init__(self, folder, name):
    path = folder / f'{name}.json'
    meta = json.loads(path.read_text())
    self.variables = meta['variables']
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
def _batches(steps, on_host, batch_size):
  """Returns the inputs of updates, from lists of `[E, ...]` and `[T, E]`.

  The order of the inputs is that of `Unroll`: reward, done, observation,
  action, policy, baseline, truncation value.
  """
  arrays = [*on_host, *(jnp.stack(column) for column in steps)]
  arrays.append(jnp.zeros_like(arrays[-1]))
  return [[x[:, i:i + batch_size] for x in arrays]
          for i in range(0, arrays[0].shape[1], batch_size)]


@jax.jit
def _copy(arrays):
  return [array + 0 for array in arrays]


class Group(threading.Thread):
  """Plays the environments of one group until `stop` is set."""

  def __init__(self, env, seed, config, policy, published, unrolls, stop):
    super().__init__(daemon=True)
    self._env = env
    self._key = jax.random.key(seed)
    self._config = config
    self._policy = policy
    self._published = published
    self._unrolls = unrolls
    self._stop_event = stop
    self.error = None

  def run(self):
    try:
      self._play()
    except BaseException as e:  # pylint: disable=broad-except
      self.error = e
    finally:
      self._env.close()

  def _play(self):
    output = self._env.initial()
    num_actions = self._env.spec.action.num_values[0]
    zeros = np.zeros([self._env.num_envs], np.float32)
    on_host = output.reward, output.done
    on_device = jax.device_put([
        output.observation, zeros.astype(np.int32),
        np.zeros([len(zeros), num_actions], np.float32), zeros])
    while not self._stop_event.is_set():
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
        on_host = output.reward, output.done
        # The next step may overwrite the frames on the host. But the step
        # needs an action, which needs the frames on the device.
        on_device = [jax.device_put(output.observation), action, logits,
                     baseline]
        hosts.append(on_host)
        devices.append(on_device)
      for arrays in _batches(
          list(zip(*devices)), [np.stack(x) for x in zip(*hosts)],
          self._config.batch_size):
        self._put(Unroll(arrays, weights.version, finished))
        finished = []

  def _put(self, unroll):
    while not self._stop_event.is_set():
      try:
        return self._unrolls.put(unroll, timeout=_WAIT_S)
      except queue.Full:
        continue


class Training:
  """The learner: updates, files, progress."""

  def __init__(self, config, folder, resume, out):
    self._config = config
    self._out = out
    self._update = Program(folder, 'update')
    self.policy = Program(folder, 'policy')
    state = resume or folder
    with np.load(state / 'state.npz') as arrays:
      self._variables = {k: jax.device_put(arrays[k]) for k in arrays}
    self._progress = json.loads((state / 'progress.json').read_text())
    self._start_s = time.monotonic() - self._progress['train_time_s']
    self.first_update = self._progress['num_updates']
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    if resume:
      with open(resume / 'episodes.csv', newline='', encoding='utf-8') as f:
        rows = list(csv.reader(f))[1:]
    self._rows = rows
    self._returns = collections.deque(maxlen=100)
    self._lags = collections.deque(maxlen=1000)
    self._publish()

  def published(self):
    return self._weights

  def _publish(self):
    self._weights = Weights(
        self._progress['num_updates'],
        _copy([self._variables[name] for name in self.policy.variables]))

  @property
  def num_env_frames(self):
    return self._progress['num_env_frames']

  def step(self, unroll, frames_per_step):
    """Makes an update; returns entropy, gradient norm and total loss."""
    config, progress = self._config, self._progress
    total = config.total_environment_frames
    rate = config.learning_rate * max(total - self.num_env_frames, 0) / total
    results, changed = self._update(
        unroll.arrays,
        {**self._variables, RATE: jax.device_put(np.float32(rate))})
    self._variables.update(changed)
    self._lags.append(progress['num_updates'] - unroll.version)
    progress['num_updates'] += 1
    progress['num_env_frames'] += (
        config.batch_size * config.unroll_length * frames_per_step)
    self._publish()
    for level, value, steps in unroll.episodes:
      self._returns.append(value)
      self._rows.append([self.num_env_frames, f'{self._train_time_s():.1f}',
                         level, f'{value:g}', steps, steps * frames_per_step])
    return results[:3]

  def learn(self, unrolls, groups, seconds, frames_per_step):
    """Learns for some seconds, or to the end of the recipe."""
    start = printed = saved = time.monotonic()
    frames = self.num_env_frames
    while (time.monotonic() - start < seconds
           and self.num_env_frames < self._config.total_environment_frames):
      for group in groups:
        if group.error:
          raise group.error
      try:
        unroll = unrolls.get(timeout=_WAIT_S)
      except queue.Empty:
        continue
      scalars = self.step(unroll, frames_per_step)
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
    entropy, norm, loss = (float(np.asarray(x)) for x in scalars)
    mean = np.mean(self._returns) if self._returns else float('nan')
    print(f'{self.num_env_frames:,} frames, {speed:,.0f} frames/s, return '
          f'{mean:.2f}, lag {np.mean(self._lags):.1f}, entropy {entropy:.3f}, '
          f'gradient norm {norm:.1f}, loss {loss:.1f}', flush=True)

  def save(self):
    """Writes the state; nothing if a number is not finite."""
    arrays = {k: np.asarray(v) for k, v in self._variables.items()}
    if not all(np.isfinite(x).all() for x in arrays.values()):
      raise SystemExit('Diverged: a number of the state is not finite.')
    self._progress['train_time_s'] = self._train_time_s()
    np.savez(self._out / 'state.npz', **arrays)
    (self._out / 'progress.json').write_text(json.dumps(self._progress))
    with open(self._out / 'episodes.csv', 'w', newline='',
              encoding='utf-8') as f:
      writer = csv.writer(f, lineterminator='\n')
      writer.writerow(episodes_lib.FIELDS)
      writer.writerows(self._rows)


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--folder', type=pathlib.Path, required=True)
  parser.add_argument('--out', type=pathlib.Path, required=True)
  parser.add_argument('--resume', type=pathlib.Path,
                      help='folder of the state of an earlier call')
  parser.add_argument('--seconds', type=float, required=True)
  parser.add_argument('--num_actors', type=int, default=256)
  parser.add_argument('--num_groups', type=int, default=2)
  args = parser.parse_args()
  jax.config.update('jax_enable_x64', True)  # Counters are int64.
  settings = json.loads((args.folder / 'settings.json').read_text())
  config = config_lib.Config.from_recipe(
      'atari_paper', logdir=str(args.out), **settings,
      num_actors=args.num_actors, num_actor_groups=args.num_groups)
  training = Training(config, args.folder, args.resume, args.out)
  envs = shares.make_environments(
      config, training.first_update,
      interface.Share(range(config.num_actors)))
  print(f'{jax.devices()[0].device_kind}, {os.cpu_count()} cores, '
        f'{config.level_name}, {len(envs)} groups of {envs[0].num_envs}, '
        f'{training.num_env_frames:,} frames', flush=True)
  unrolls, stop = queue.Queue(maxsize=1), threading.Event()
  groups = [
      Group(env, config.derive_seed('actor', i, training.first_update), config,
            training.policy, training.published, unrolls, stop)
      for i, env in enumerate(envs)]
  for group in groups:
    group.start()
  try:
    training.learn(unrolls, groups, args.seconds,
                   envs[0].spec.num_action_repeats)
  finally:
    stop.set()
    for group in groups:
      group.join(30)


if __name__ == '__main__':
  main()
