# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""One machine: actors, queue and learner wired together, and test mode."""

import collections
import contextlib
import dataclasses
import os
import signal
import threading
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

import numpy as np
from scalable_agent import errors
from scalable_agent import actor as actor_lib
from scalable_agent import agents
from scalable_agent import checkpointing
from scalable_agent import config as config_lib
from scalable_agent import dynamic_batching
from scalable_agent import environments
from scalable_agent import evaluation
from scalable_agent import learner as learner_lib
from scalable_agent import metrics
from scalable_agent import optimizers
from scalable_agent import queues
from scalable_agent import replay as replay_lib
from scalable_agent.scores import files as score_files
from scalable_agent.scores import table as score_table
from scalable_agent import structs
from scalable_agent import unrolls
from scalable_agent.algorithms import impala
import tensorflow as tf

_JOIN_TIMEOUT_S = 30
# On a CPU: keeps small what the layers make of them (BUILD_NOTES.md).
_OBSERVATIONS_PER_MICRO_BATCH = 84
_MIN_MICRO_BATCH_SIZE = 4
# So many actors with fewer environments each share their policy steps.
_MIN_ACTORS_SHARING = 4
_MIN_ENVIRONMENTS_PER_STEP = 4


class _ReadyBatch(NamedTuple):
  """A batch on the learner's device, and what the log needs of it."""
  tensors: structs.ActorOutput
  episodes: List[metrics.Episode]
  actions: np.ndarray
  policy_version: np.ndarray


def run(config: config_lib.Config) -> int:
  """Trains or tests; returns the exit code of the program."""
  tf.keras.utils.set_random_seed(config.seed)
  # Layers read it when they are made. Variables are float32 in any case.
  tf.keras.config.set_dtype_policy({
      'float32': 'float32', 'bfloat16': 'mixed_bfloat16'}[config.compute_dtype])
  if config.mode == 'test':
    test(config)
    return 0
  return train(config)


def train(config: config_lib.Config) -> int:
  """Trains until `total_environment_frames` or a signal.

  Goes on from the checkpoint in `logdir` if there is one.

  Returns:
    0, also when SIGINT or SIGTERM ended the run with a checkpoint.

  Raises:
    Exception: whatever an environment or the learner raised, after a checkpoint
      was written.
  """
  with contextlib.ExitStack() as stack:
    stop = stack.enter_context(_stop_on_signals())
    part = checkpointing.latest_number(config.logdir)
    envs = make_environments(config, part)
    for env in envs:
      stack.callback(env.close)
    learner = make_learner(config, envs[0], part)
    replay = make_replay(config, envs[0], learner, part)
    checkpointer = checkpointing.Checkpointer(
        config.logdir, learner, describe_agent(config, envs[0]),
        level=config.level_name)
    restored = checkpointer.restore()
    if restored:
      print(f'Going on from {restored}, '
            f'{int(learner.num_env_frames):,} frames.')
    if int(learner.num_env_frames) >= config.total_environment_frames:
      print('This run is finished: raise --total_environment_frames, or use '
            'another --logdir.')
      return 0
    config.save()
    sharing = (' that share their policy steps'
               if _actors_share_policy(config, envs) else '')
    device = 'CPU' if _on_cpu() else 'GPU'
    print(f'{config.num_actors} environments, {len(envs)} groups{sharing}, '
          f'learning on {device}. Progress is printed after the first update, '
          'which compiles.', flush=True)
    writer = stack.enter_context(contextlib.closing(
        metrics.MetricsWriter(config.logdir, envs[0].spec.num_action_repeats)))
    _Trainer(config, envs, learner, replay, checkpointer, writer, part).run(
        stop)
  return 0


class _Trainer:
  """The threads of a run and the loop that learns from what they bring."""

  def __init__(self, config: config_lib.Config, envs: List[Any],
               learner: learner_lib.Learner,
               replay: Optional[replay_lib.Replay],
               checkpointer: checkpointing.Checkpointer,
               writer: metrics.MetricsWriter, part: int):
    self._config = config
    self._learner = learner
    self._replay = replay
    self._checkpointer = checkpointer
    self._writer = writer
    self._progress = metrics.Progress(
        int(learner.num_env_frames), config.total_environment_frames)
    self._speed = metrics.Speed(int(learner.num_env_frames))
    # The policies act with the oldest of these.
    self._versions = collections.deque(
        [learner.published()], maxlen=config.min_policy_lag + 1)
    self._unrolls = queues.BoundedQueue(config.queue_capacity)
    self._batches = queues.BoundedQueue(1)
    self._learner_timer = metrics.StageTimer()
    self._batches_timer = metrics.StageTimer()
    self._actor_timers = [metrics.StageTimer() for _ in envs]
    self._shared_policy = None
    if _actors_share_policy(config, envs):
      self._shared_policy = dynamic_batching.SharedPolicy(
          self._make_policy(envs[0], 0, part, jit_compile=False))
    self._actors = [
        actor_lib.Actor(
            env,
            self._shared_policy or self._make_policy(
                env, index, part, jit_compile=_xla_compiles_policy(config)),
            self._unrolls, config.unroll_length, timer,
            num_buffers=config.queue_capacity + 1,
            bootstrap_truncated=config.bootstrap_truncated)
        for index, (env, timer) in enumerate(zip(envs, self._actor_timers))]
    self._batch = unrolls.allocate(
        config.unroll_length, [''] * config.batch_size,
        envs[0].spec.observation, _num_actions(envs[0]),
        learner.agent.initial_state(1))

  def _make_policy(self, env, index, part, jit_compile):
    agent = make_agent(self._config, env,
                       _seed(self._config, 'actor', index, part))
    return actor_lib.Policy(agent, lambda: self._versions[0],
                            jit_compile=jit_compile)

  def run(self, stop: threading.Event) -> None:
    """Trains; whatever happens, ends the threads and saves a checkpoint."""
    threads = [
        threading.Thread(target=self._guarded, args=(target,), name=name,
                         daemon=True)
        for name, target in [
            *((f'actor-{i}', a.run) for i, a in enumerate(self._actors)),
            ('batches', self._make_batches)]]
    self._start_s = time.monotonic() - float(self._checkpointer.train_time_s)
    for thread in threads:
      thread.start()
    try:
      self._learn(stop)
    finally:
      try:  # Before the threads are waited for: who stops us may be impatient.
        print(f'Saved {self._save()}, '
              f'{int(self._learner.num_env_frames):,} frames.', flush=True)
      finally:
        self._unrolls.close()
        self._batches.close()
        for actor in self._actors:
          actor.close()
        deadline = time.monotonic() + _JOIN_TIMEOUT_S
        if self._shared_policy:
          self._shared_policy.close(_JOIN_TIMEOUT_S)
        for thread in threads:
          thread.join(max(deadline - time.monotonic(), 0))

  def _guarded(self, target):
    try:
      target()
    except queues.QueueClosed:
      pass
    except BaseException as e:  # pylint: disable=broad-except
      self._batches.fail(e)

  def _make_batches(self):
    """Copies unrolls into batches: one waits, one is made, one is trained."""
    stage = self._batches_timer.stage
    num_fresh = self._config.num_fresh_unrolls
    if self._replay:
      source = replay_lib.batches(
          self._unrolls, self._batch, self._replay, num_fresh)
    else:
      source = unrolls.batches(self._unrolls, self._batch)
    # What is logged is of fresh unrolls: the others were logged before.
    fresh = unrolls.first_columns(self._batch, num_fresh)
    while True:
      with stage('collect'):  # Waits for unrolls and copies them.
        batch = next(source)
      with stage('to_device'):
        ready = _ReadyBatch(
            tensors=learner_lib.to_tensors(self._learner.agent, batch.output),
            episodes=metrics.finished_episodes(fresh.output),
            actions=fresh.output.agent_outputs.action[1:].copy(),
            policy_version=fresh.policy_version.copy())
      with stage('wait'):
        self._batches.put(ready)

  def _learn(self, stop):
    config, learner = self._config, self._learner
    summary_due = _Interval(config.save_summaries_secs)
    progress_due = _Interval(config.progress_secs)
    checkpoint_due = _Interval(config.save_checkpoint_secs)
    num_env_frames = int(learner.num_env_frames)
    policy_lag = float('nan')
    while (num_env_frames < config.total_environment_frames
           and not stop.is_set()):
      with self._learner_timer.stage('wait'):
        batch = self._next_batch(stop)
      if batch is None:
        break
      policy_lag = float(np.mean(
          int(learner.num_updates) - batch.policy_version))
      with self._learner_timer.stage('learn'):
        scalars = learner.step(batch.tensors)
        self._versions.append(learner.published())
      num_env_frames = int(learner.num_env_frames)
      self._progress.add_episodes(batch.episodes)
      self._writer.write_episodes(
          batch.episodes, num_env_frames, self._train_time_s())
      if progress_due():
        print(self._progress.line(num_env_frames, policy_lag), flush=True)
      if summary_due():
        self._write_summary(scalars, batch, policy_lag, num_env_frames)
      if checkpoint_due():
        self._save()
    if stop.is_set():
      print('\nStopping with a checkpoint. A second signal stops at once.')
    print(self._progress.line(num_env_frames, policy_lag))
    print('Time: ' + ', '.join(f'{name} {100 * share:.0f} %' for name, share
                               in self._time_shares().items()), flush=True)

  def _save(self):
    self._writer.flush()  # The episodes that the checkpoint has counted.
    self._checkpointer.train_time_s.assign(self._train_time_s())
    return self._checkpointer.save()

  def _train_time_s(self):
    return time.monotonic() - self._start_s

  def _next_batch(self, stop):
    # Signals are handled between waits, so no wait may be for ever.
    while not stop.is_set():
      try:
        return self._batches.get(timeout_s=0.5)
      except queues.QueueTimeout:
        pass
      except Exception:
        if not stop.is_set():
          raise  # Otherwise the signal has ended the environments, too.
    return None

  def _write_summary(self, scalars, batch, policy_lag, num_env_frames):
    values = {name: float(value) for name, value in scalars.items()}
    if not np.isfinite(values['total_loss']):
      raise errors.DivergedError(
          f'The loss is {values["total_loss"]} at {num_env_frames:,} frames.')
    values['policy_lag'] = policy_lag
    values['frames_per_second'] = self._speed(num_env_frames)
    values['mean_return'] = self._progress.mean_return
    for name, share in self._time_shares().items():
      values[f'time/{name}'] = share
    self._writer.write_scalars(values, batch.actions, num_env_frames)

  def _time_shares(self):
    """Returns the share of its time that each role spends where."""
    shares = {}
    for role, timers in (('actor', self._actor_timers),
                         ('batches', [self._batches_timer]),
                         ('learner', [self._learner_timer])):
      seconds = metrics.total_seconds(timers)
      for stage, value in seconds.items():
        shares[f'{role}/{stage}'] = value / max(sum(seconds.values()), 1e-9)
    return shares


def test(config: config_lib.Config) -> Dict[str, List[float]]:
  """Plays whole games on every level with the latest checkpoint.

  Prints the scores beside published ones and writes them into `logdir`, anew
  after every level, so that little is lost where a long test is stopped.

  Returns:
    The unclipped returns of each level.

  Raises:
    ConfigError: if `logdir` holds no checkpoint.
  """
  if not checkpointing.latest_checkpoint(config.logdir):
    raise errors.ConfigError(
        f'--logdir={config.logdir} holds no checkpoint to test. Train first, '
        'or name the directory of a trained agent.')
  config = dataclasses.replace(config, life_loss_ends_episode=False)
  settings = environment_settings(config)
  levels = list(dict.fromkeys(config.level_names))
  environments.check_levels(levels, settings)
  policy, path, rows = None, None, []
  for level in levels:
    num_envs = min(config.num_actors, config.test_num_episodes)
    with environments.make_vec([level] * num_envs,
                               [_seed(config, 'test', index)
                                for index in range(num_envs)],
                               settings) as env:
      if policy is None:  # The levels have the same interface: one agent.
        policy, num_env_frames = _test_policy(config, env)
        trained_with = config_lib.trained_with(config.logdir)
      row = score_table.make_row(level, evaluation.episode_returns(
          env, policy, config.test_num_episodes, _count_games(config, level)))
    rows.append(row)
    print(f'{level}: mean {row.mean:.2f}, standard deviation {row.std:.2f} '
          f'over {len(row.returns)} episodes at {num_env_frames:,} frames')
    print('  returns: ' + ' '.join(f'{r:g}' for r in row.returns), flush=True)
    table = score_table.make_table(
        [score_table.Run(config, num_env_frames, trained_with, tuple(rows))])
    path, written = _write_table(table, path)
  print(f'\n{score_files.to_markdown(table)}\n{written}', flush=True)
  return {row.level: list(row.returns) for row in rows}


def _count_games(config, level):
  """Returns a function that prints now and then how many games are over."""
  is_due = _Interval(config.progress_secs)

  def report(num_episodes):
    if is_due():
      print(f'{level}: {num_episodes} of {config.test_num_episodes} games',
            flush=True)
  return report


def _test_policy(config, env):
  """Returns the policy of the latest checkpoint, and its frames."""
  learner = make_learner(config, env)
  checkpointing.Checkpointer(
      config.logdir, learner, describe_agent(config, env)).restore()
  weights = learner.published()
  policy = actor_lib.Policy(learner.agent, lambda: weights,
                            greedy=config.test_greedy,
                            jit_compile=_xla_compiles_policy(config))
  return policy, int(learner.num_env_frames)


def _write_table(table, path):
  """Writes the table to a path of its own; returns the path, and what to say.

  Games are not lost where nothing can be written.
  """
  [run] = table.runs
  try:
    path = path or score_files.reserve_path(run.config.logdir,
                                            run.num_env_frames)
    score_files.write(table, path)
  except OSError as e:
    return path, (f'{path or run.config.logdir} could not be written: '
                  f'{e.strerror}.')
  return path, f'Wrote {path}.json, .csv and .md.'


def environment_settings(
    config: config_lib.Config) -> environments.EnvironmentSettings:
  """Returns the part of `config` that environments need."""
  names = [f.name for f in dataclasses.fields(environments.EnvironmentSettings)]
  return environments.EnvironmentSettings(
      **{name: getattr(config, name) for name in names})


def make_environments(config: config_lib.Config,
                      part: int) -> List[environments.FlowEnvironment]:
  """Makes one vector of environments per group of actors.

  Args:
    config: the settings of the run.
    part: differs between the parts of a run that was stopped and went on, so
      that a part does not replay the seeds of the one before.
  """
  actors = range(config.num_actors)
  return environments.make_groups(
      [config.level_of(i) for i in actors],
      [_seed(config, 'environment', i, part) for i in actors],
      environment_settings(config), config.num_actor_groups)


def _seed(config, role, index, part=0):
  """Returns a seed of its own for everything that is random."""
  role_number = (
      'environment', 'learner', 'actor', 'test', 'replay').index(role)
  sequence = np.random.SeedSequence(
      [config.seed, role_number, int(index), part])
  return int(sequence.generate_state(1)[0] % 2**31)


def make_agent(config: config_lib.Config, env: environments.FlowEnvironment,
               seed: int) -> agents.Agent:
  """Makes the agent that `config` asks for, for the levels of `env`.

  Raises:
    ConfigError: if the agent does not fit the observations.
  """
  try:
    return agents.make_agent(
        config.agent, env.spec.observation, _num_actions(env),
        use_lstm=config.use_lstm,
        use_last_action_reward=config.use_last_action_reward,
        use_instruction=config.use_instruction, seed=seed)
  except ValueError as e:
    raise errors.ConfigError(str(e)) from e


def _num_actions(env):
  [num_actions] = env.spec.action.num_values
  return num_actions


def describe_agent(config: config_lib.Config,
                   env: environments.FlowEnvironment) -> str:
  """Says in one line what must be equal for weights to be interchangeable."""
  spec = env.spec.observation
  shapes = {name: entry.shape for name, entry in spec.items()} if isinstance(
      spec, dict) else spec.shape
  return (f'{config.agent}, use_lstm={config.use_lstm}, '
          f'use_last_action_reward={config.use_last_action_reward}, '
          f'{"" if config.use_instruction else "use_instruction=False, "}'
          f'observations {shapes}, {_num_actions(env)} actions, '
          f'{config.optimizer}')


def make_learner(config: config_lib.Config, env: environments.FlowEnvironment,
                 part: int = 0) -> learner_lib.Learner:
  """Makes the learner that `config` asks for, for the levels of `env`."""
  return learner_lib.Learner(
      make_agent(config, env, _seed(config, 'learner', 0, part)),
      impala.Impala(discounting=config.discounting,
                    baseline_cost=config.baseline_cost,
                    entropy_cost=config.entropy_cost,
                    reward_clipping=config.reward_clipping,
                    correction=config.correction),
      optimizers.make_optimizer(
          config.optimizer, learning_rate=config.learning_rate,
          decay=config.decay, momentum=config.momentum, epsilon=config.epsilon,
          beta_1=config.adam_beta1, beta_2=config.adam_beta2),
      learning_rate=config.learning_rate,
      total_environment_frames=config.total_environment_frames,
      num_env_frames_per_update=(config.num_fresh_unrolls
                                 * config.unroll_length
                                 * env.spec.num_action_repeats),
      clip_gradient_norm=config.clip_gradient_norm or None,
      micro_batch_size=_micro_batch_size(config),
      jit_compile=config.xla == 'all')


def make_replay(config: config_lib.Config, env: environments.FlowEnvironment,
                learner: learner_lib.Learner,
                part: int) -> Optional[replay_lib.Replay]:
  """Makes the replay that `config` asks for, None if it asks for none.

  Raises:
    ConfigError: if it is larger than the machine's memory.
  """
  if not config.replay_capacity:
    return None
  allocate = lambda num_unrolls: unrolls.allocate(
      config.unroll_length, [''] * num_unrolls, env.spec.observation,
      _num_actions(env), learner.agent.initial_state(1))
  needed_gb = config.replay_capacity * replay_lib.num_bytes(allocate(1)) / 1e9
  memory_gb = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9
  if needed_gb > memory_gb:
    raise errors.ConfigError(
        f'--replay_capacity={config.replay_capacity} needs {needed_gb:,.1f} '
        f'GB, but this machine has {memory_gb:,.1f} GB: lower it.')
  print(f'Replay of {config.replay_capacity:,} unrolls: {needed_gb:,.2f} GB '
        'when it is full.')
  return replay_lib.Replay(allocate(config.replay_capacity),
                           _seed(config, 'replay', 0, part))


def _actors_share_policy(config, envs):
  if config.dynamic_batching is not None:
    return config.dynamic_batching
  return (len(envs) >= _MIN_ACTORS_SHARING
          and config.num_actors / len(envs) < _MIN_ENVIRONMENTS_PER_STEP)


def _xla_compiles_policy(config):
  if config.xla == 'auto':  # The faster one on CPUs, unmeasured on others.
    return _on_cpu() and config.agent != 'deep'
  return config.xla != 'none'


def _micro_batch_size(config):
  """Returns how many unrolls the learner processes at once, None for all."""
  if config.micro_batch_size:
    return config.micro_batch_size
  pays = config.agent == 'deep' or (
      config.agent == 'shallow' and config.xla == 'all')
  if not (pays and _on_cpu()):
    return None
  size = max(_MIN_MICRO_BATCH_SIZE,
             _OBSERVATIONS_PER_MICRO_BATCH // (config.unroll_length + 1))
  return size if size < config.batch_size else None


def _on_cpu():
  return not tf.config.list_physical_devices('GPU')


class _Interval:
  """True once every `seconds`, asked by calling it."""

  def __init__(self, seconds: float):
    self._seconds = seconds
    self._last = time.monotonic()

  def __call__(self) -> bool:
    is_due = time.monotonic() - self._last >= self._seconds
    if is_due:
      self._last = time.monotonic()
    return is_due


@contextlib.contextmanager
def _stop_on_signals() -> Iterator[threading.Event]:
  """Yields an event that the first SIGINT or SIGTERM sets.

  The second one ends the process at once; environments end with it.
  """
  stop = threading.Event()
  signals = (signal.SIGINT, signal.SIGTERM)

  def handle(unused_number, unused_frame):
    stop.set()
    for number in signals:
      signal.signal(number, signal.SIG_DFL)

  previous = [signal.signal(number, handle) for number in signals]
  try:
    yield stop
  finally:
    for number, handler in zip(signals, previous):
      signal.signal(number, handler)
