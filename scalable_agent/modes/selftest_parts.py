# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Parts of the program that compute: V-trace, policy steps, whole updates.

Each part is made anew for a device, a precision and XLA, always with the same
weights and inputs, and returns arrays to compare.
"""

from collections.abc import Callable
import functools
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scalable_agent import algorithms
from scalable_agent import vtrace
from scalable_agent.experience import structs
from scalable_agent.learning import gradients as gradients_lib
from scalable_agent.learning import learner as learner_lib
from scalable_agent.learning import optimizers
from scalable_agent.networks import agents
from scalable_agent.settings import config as config_lib
import tensorflow as tf

_LENGTH, _BATCH_SIZE, _NUM_ENVS = 5, 4, 32
_NUM_TRANSITIONS = 64
_LEARNING_RATE = 5e-4
_NUM_ACTION_REPEATS = 4
_FRAME = structs.ArraySpec((4, 84, 84), np.dtype(np.uint8))
_WORDS = (b'go to the red door', b'pick up a key', b'open')
_DISCRETE, _CONTINUOUS = structs.ActionSpec((6,)), structs.ActionSpec((), 6)

# Returns the results of a call, by name.
Results: TypeAlias = dict[str, np.ndarray]
_Data: TypeAlias = structs.Unroll | structs.Transition | structs.Sequence
# Makes a learner, which XLA compiles or not, and a batch.
_MakeLearner: TypeAlias = Callable[[bool], tuple[learner_lib.Learner, _Data]]


class Part(NamedTuple):
  """A part of the program.

  Attributes:
    name: such as `update of sac, mlp`.
    make: makes a call of the part; the argument says whether XLA compiles.
    num_env_frames: environment frames of a call; 0 if a call has none.
    draws: whether the part draws random numbers. XLA draws other numbers.
    has_bfloat16: whether the precision of products matters.
    graph: makes the graph of a call without the optimizer, to count operations.
  """
  name: str
  make: Callable[[bool], Callable[[], Results]]
  num_env_frames: int = 0
  draws: bool = False
  has_bfloat16: bool = True
  graph: Callable[[], tf.Graph] | None = None

  def num_operations(self) -> int:
    """Returns the operations on floats of a call; 0 without a graph.

    Operations in a loop, such as those of an LSTM with its state, are left out.
    """
    if self.graph is None:
      return 0
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel('ERROR')  # The profiler of graphs says that it is old.
    options = tf.compat.v1.profiler.ProfileOptionBuilder(
        tf.compat.v1.profiler.ProfileOptionBuilder.float_operation()
    ).with_empty_output().build()
    try:
      return tf.compat.v1.profiler.profile(
          self.graph(), options=options).total_float_ops
    finally:
      logger.setLevel(level)


def parts() -> list[Part]:
  """Returns all parts."""
  partial = functools.partial
  per_step = _NUM_ENVS * _NUM_ACTION_REPEATS
  per_update = _LENGTH * _BATCH_SIZE * _NUM_ACTION_REPEATS
  found = [Part('V-trace, loop', partial(_vtrace, False), has_bfloat16=False),
           Part('V-trace, associative scan', partial(_vtrace, True),
                has_bfloat16=False)]
  for network in ('mlp', 'shallow', 'deep', 'deep with LSTM'):
    found += [
        Part(f'policy step, {network}', partial(_policy_step, network),
             per_step, graph=partial(_policy_graph, network)),
        _update_part(f'impala, {network}',
                     partial(_on_policy, 'impala', network), per_update)]
  found += [
      _update_part(f'appo, {network}',
                   partial(_on_policy, 'appo', network), per_update)
      for network in ('mlp', 'nature')]
  return found + [
      _update_part(f'{algorithm}, {network}',
                   partial(_off_policy, algorithm, network),
                   draws=algorithm in ('td3', 'sac', 'mpo'))
      for algorithm, network in (
          ('ddqn', 'mlp'), ('ddqn', 'nature'), ('ddqn', 'mlp with LSTM'),
          ('ddpg', 'mlp'), ('td3', 'mlp'), ('sac', 'mlp'), ('mpo', 'mlp'))]


def _update_part(name: str, make: _MakeLearner, num_env_frames: int = 0,
                 draws: bool = False) -> Part:
  return Part(
      f'update of {name}', lambda xla: _update(*make(xla)), num_env_frames,
      draws, graph=lambda: _update_graph(*make(False)))


def exact_vtrace() -> Results:
  """Returns V-trace in float64, straight from the formula of the paper."""
  log_rhos, discounts, rewards, values, bootstrap = (
      x.astype(np.float64) for x in _vtrace_inputs())
  rhos = np.minimum(np.exp(log_rhos), 1)
  next_values = np.append(values[1:], bootstrap[None], axis=0)
  deltas = rhos * (rewards + discounts * next_values - values)
  vs_minus_v, total = np.zeros_like(values), np.zeros_like(bootstrap)
  for t in reversed(range(len(values))):
    total = deltas[t] + discounts[t] * rhos[t] * total
    vs_minus_v[t] = total
  vs = values + vs_minus_v
  next_vs = np.append(vs[1:], bootstrap[None], axis=0)
  return {'vs': vs, 'pg_advantages': rhos * (
      rewards + discounts * next_vs - values)}


def _vtrace_inputs() -> list[np.ndarray]:
  rng, shape = np.random.RandomState(0), (100, 32)
  discounts = np.where(rng.uniform(size=shape) < .05, 0, .99)
  return [x.astype(np.float32) for x in (
      rng.normal(size=shape), discounts, rng.normal(size=shape),
      rng.normal(size=shape), rng.normal(size=shape[1:]))]


def _vtrace(scan: bool, xla: bool) -> Callable[[], Results]:
  inputs = [tf.constant(x) for x in _vtrace_inputs()]
  compiled = tf.function(
      lambda *inputs: vtrace.from_importance_weights(
          *inputs, associative_scan=scan)._asdict(),
      autograph=False, jit_compile=xla)
  return lambda: _arrays(compiled(*inputs))


def _learner(algorithm: str, network: str, xla: bool
             ) -> tuple[learner_lib.Learner, structs.EnvironmentSpec]:
  """Returns a learner with moved weights: some heads start as zeros."""
  has_lstm = network.endswith('LSTM')
  agent = network.partition(' ')[0]
  observation: structs.ObservationSpec = (
      structs.ArraySpec((17,), np.dtype(np.float32)) if agent == 'mlp'
      else _FRAME)
  if network == 'deep with LSTM':
    observation = {'frame': _FRAME, 'instruction': structs.ArraySpec(
        (), np.dtype(object))}
  is_discrete = algorithm in ('impala', 'appo', 'ddqn')
  options: dict[str, Any] = (
      {'use_last_action_reward': has_lstm}
      if algorithm in ('impala', 'appo') else {'updates_per_call': 1})
  if has_lstm and algorithm == 'ddqn':
    options |= dict.fromkeys(
        ('unroll_length', 'sequence_length', 'burn_in_steps'), _LENGTH)
  config = config_lib.Config(
      algorithm=algorithm, agent=agent, use_lstm=has_lstm,
      batch_size=_BATCH_SIZE, seed=1, micro_batch_size=0,
      xla='all' if xla else 'none', reward_clipping='none', **options)
  spec = structs.EnvironmentSpec(
      observation, _DISCRETE if is_discrete else _CONTINUOUS,
      _NUM_ACTION_REPEATS)
  learned = algorithms.make(config, spec, seed=1)
  learner = learner_lib.Learner(
      learned, {group: optimizers.Scheduled(
          optimizers.Adam(_LEARNING_RATE), lambda num_env_frames: (
              _LEARNING_RATE)) for group in learned.groups},
      clip_gradient_norm=40., jit_compile=xla)
  rng = np.random.RandomState(1)
  for group in learner.algorithm.groups.values():
    for variable in group:
      variable.assign_add(rng.normal(0, .01, variable.shape))
  return learner, spec


def _on_policy(algorithm: str, network: str, xla: bool
               ) -> tuple[learner_lib.Learner, _Data]:
  learner, spec = _learner(algorithm, network, xla)
  rng = np.random.RandomState(2)
  shape = (_LENGTH + 1, _BATCH_SIZE)
  return learner, structs.Unroll(
      structs.Steps(
          structs.StepOutput(
              rng.normal(size=shape).astype(np.float32), structs.NO_INFO,
              rng.uniform(size=shape) < .1, _observation(rng, spec, shape)),
          structs.AgentOutput(
              rng.randint(6, size=shape).astype(np.int32),
              rng.normal(size=(*shape, 6)).astype(np.float32),
              rng.normal(size=shape).astype(np.float32)),
          np.zeros(shape, np.float32)),
      structs.Start((), (), learner.agent.initial_state(_BATCH_SIZE), ()))


def _off_policy(algorithm: str, network: str, xla: bool
                ) -> tuple[learner_lib.Learner, _Data]:
  learner, spec = _learner(algorithm, network, xla)
  rng = np.random.RandomState(2)
  if network.endswith('LSTM'):
    return learner, _sequence(rng, learner, spec)
  shape = (_NUM_TRANSITIONS,)
  return learner, structs.Transition(
      _observation(rng, spec, shape),
      rng.randint(6, size=shape).astype(np.int32) if spec.action.num_values
      else np.tanh(rng.normal(size=(*shape, 6)).astype(np.float32)),
      rng.normal(size=shape).astype(np.float32),
      np.full(shape, .99, np.float32),
      _observation(rng, spec, shape))


def _sequence(rng: np.random.RandomState, learner: learner_lib.Learner,
              spec: structs.EnvironmentSpec) -> structs.Sequence:
  """Returns sequences of discrete actions, half of them burn-in."""
  shape, learned = (2 * _LENGTH + 1, _BATCH_SIZE), (_LENGTH, _BATCH_SIZE)
  return structs.Sequence(
      structs.StepOutput(
          rng.normal(size=shape).astype(np.float32), structs.NO_INFO,
          rng.uniform(size=shape) < .1, _observation(rng, spec, shape)),
      rng.randint(6, size=shape).astype(np.int32),
      learner.agent.initial_state(_BATCH_SIZE),
      rng.normal(size=learned).astype(np.float32),
      np.full(learned, .99, np.float32),
      np.tile(np.arange(1, _LENGTH + 1, dtype=np.int32)[:, None], _BATCH_SIZE),
      np.ones(learned, np.float32))


def _update(learner: learner_lib.Learner, data: _Data
            ) -> Callable[[], Results]:
  """Returns a call of an update; its results are of the first call."""
  batch = learner.to_device(data, num_new_frames=0)

  def update() -> Results:
    scalars = learner.step(batch).scalars
    return _arrays({**scalars, **{
        f'{kind} {i}': variable
        for kind in ('variables', 'optimizer')
        for i, variable in enumerate(learner.state[kind])}})

  return update


def _update_graph(learner: learner_lib.Learner, data: _Data) -> tf.Graph:
  """Returns the graph of the loss and its gradients."""
  groups = learner.algorithm.groups

  @tf.function(autograph=False)
  def gradients(data: structs.Nest) -> gradients_lib.Gradients:
    with tf.GradientTape(persistent=True) as tape:
      loss = learner.algorithm.loss(
          data, None, tuple(groups), tf.zeros([2], tf.int32))
    return gradients_lib.of_groups(tape, loss.by_group, groups)

  return gradients.get_concrete_function(
      learner.to_device(data, num_new_frames=0).data).graph


def _policy_step(network: str, xla: bool) -> Callable[[], Results]:
  step, env_output = _policy(network, xla)
  return lambda: _arrays(step(env_output))


def _policy_graph(network: str) -> tf.Graph:
  step, env_output = _policy(network, False)
  return step.get_concrete_function(env_output).graph


def _policy(network: str, xla: bool
            ) -> tuple[tf.types.experimental.PolymorphicFunction,
                       structs.StepOutput]:
  """Returns a compiled policy step, and its input."""
  learner, spec = _learner('impala', network, False)
  agent: agents.Agent = learner.agent
  rng = np.random.RandomState(2)
  shape = (_NUM_ENVS,)
  zeros = tf.zeros(shape)
  env_output = agent.tokenize(structs.StepOutput(
      zeros, structs.NO_INFO, tf.zeros(shape, tf.bool),
      _observation(rng, spec, shape)))
  state = agent.initial_state(_NUM_ENVS)

  @tf.function(autograph=False, jit_compile=xla)
  def step(env_output: structs.StepOutput) -> dict[str, tf.Tensor]:
    output, _ = agent.step(tf.zeros(shape, tf.int32), env_output, state, True)
    return {'policy': output.policy, 'baseline': output.baseline}

  return step, env_output


def _observation(rng: np.random.RandomState, spec: structs.EnvironmentSpec,
                 shape: tuple[int, ...]) -> structs.Nest:
  """Returns random observations of shape `[*shape, ...]`."""
  if isinstance(spec.observation, dict):
    words = np.empty(shape, object)
    words[...] = rng.choice(np.array(_WORDS, object), shape)
    return {'frame': _frames(rng, shape), 'instruction': words}
  if spec.observation == _FRAME:
    return _frames(rng, shape)
  return np.array(
      rng.normal(size=(*shape, *spec.observation.shape)), np.float32)


def _frames(rng: np.random.RandomState, shape: tuple[int, ...]) -> np.ndarray:
  return rng.randint(256, size=(*shape, *_FRAME.shape)).astype(np.uint8)


def _arrays(tensors: dict[str, tf.Tensor]) -> Results:
  return {name: np.array(tensor) for name, tensor in tensors.items()}
