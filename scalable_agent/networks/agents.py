# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Agents: a torso, perhaps a recurrent core, and a head that makes actions.

`T` is time, `B` the batch, `A` the number of actions. An agent is evaluated by
`unroll` on whole unrolls (learning) and by `step` on single steps (acting),
with the same weights and, up to rounding, the same results.
"""

import collections.abc
from collections.abc import Sequence

import numpy as np
from scalable_agent.experience import structs
from scalable_agent.networks import cores
from scalable_agent.networks import heads
from scalable_agent.networks import instructions
from scalable_agent.networks import masks
from scalable_agent.networks import normalisers
from scalable_agent.networks import pop_art
import tensorflow as tf


class Agent(tf.keras.Model):
  """Actions, and perhaps a baseline, from observations.

  `factory.make_agent` makes all variables; the order of variables depends only
  on the arguments.

  Attributes:
    torso: the layer that sees observations, after `observation_normaliser` if
      there is one. With `--agent=module:function`, the layer of the function.
  """

  def __init__(self, torso: tf.keras.layers.Layer,
               action_spec: structs.ActionSpec, head: heads.Head,
               params: tf.keras.layers.Layer, *,
               baseline: tf.keras.layers.Layer | None,
               instruction_encoder: instructions.InstructionEncoder | None,
               core: cores.Core | None, use_last_action_reward: bool,
               has_epsilon: bool, action_seed: int, has_skip: bool = False,
               baseline_torso: tf.keras.layers.Layer | None = None,
               observation_normaliser: (
                   normalisers.ObservationNormaliser | None) = None):
    """Makes an agent of layers; most callers want `factory.make_agent`.

    Args:
      torso: maps observations `[N, ...]` to features `[N, F]`.
      action_spec: spec of the actions.
      head: turns parameters into actions.
      params: maps features to the `P` parameters of `head`.
      baseline: maps features to `[N, 1]`. Without a baseline, `step` returns no
        parameters.
      instruction_encoder: encodes the observations' `instruction`.
      core: None for a feed-forward agent.
      use_last_action_reward: whether the agent sees the action that led to the
        observation, and the reward of this action, clipped to [-1, 1].
      has_epsilon: whether there is a variable `epsilon`, the probability of a
        uniformly random action, initially 1.
      action_seed: seed of the choice of actions.
      has_skip: whether the features for `params` also have the core's input.
      baseline_torso: maps features to those that `baseline` sees; None for the
        same features.
      observation_normaliser: changes the input of the torso; None for none.
    """
    super().__init__()
    self.action_spec = action_spec
    self.head = head
    self.observation_normaliser = observation_normaliser
    self.torso = torso
    self._instruction_encoder = instruction_encoder
    self._core = core
    self._has_skip = has_skip
    self._use_last_action_reward = use_last_action_reward
    self._params = params
    self._baseline = baseline
    self._baseline_torso = baseline_torso
    self.epsilon = self.add_weight(
        shape=(), initializer='ones', trainable=False, dtype='float32',
        name='epsilon') if has_epsilon else None
    # Keeps the method only. Keras would save a generator in checkpoints, and
    # restored agents would repeat each other's choices.
    self._random_ints = tf.random.Generator.from_seed(
        action_seed, alg='philox').uniform_full_int

  @property
  def returns(self) -> pop_art.PopArt | None:
    """The baseline, if it has statistics of returns."""
    baseline = self._baseline
    return baseline if isinstance(baseline, pop_art.PopArt) else None

  @property
  def output_spec(self) -> structs.AgentOutput:
    """Specs of the output of `step` for one environment."""
    floats = lambda *shape: (structs.ArraySpec(shape, np.dtype(np.float32))
                             if self._baseline else ())
    return structs.AgentOutput(
        action=self.action_spec.array, policy=floats(self.head.num_params),
        baseline=floats(*(self.returns.shape if self.returns else ())))

  @property
  def has_memory(self) -> bool:
    """Whether there is a recurrent core."""
    return self._core is not None

  @property
  def reads_instructions(self) -> bool:
    """Whether the agent sees the observations' `instruction`."""
    return self._instruction_encoder is not None

  @property
  def memory_variables(self) -> list[tf.Variable]:
    """The trainable variables of `remember`; none without a memory."""
    heads_own = {id(v) for v in self.head_variables}
    return [v for v in self.trainable_variables if id(v) not in heads_own]

  @property
  def head_variables(self) -> list[tf.Variable]:
    """The trainable variables of `params`: without a memory, all variables."""
    return (self._params.trainable_variables if self._core
            else self.trainable_variables)

  @property
  def num_features(self) -> int:
    """The number `F` of features that the head sees."""
    return self.head_variables[0].shape[0]

  def initial_state(self, batch_size: int) -> structs.State:
    """Returns the recurrent state before the first step.

    The state is zeros: `(c, h)` of an LSTM, float32 `[batch_size, units]`, a
    tuple of float32 `[batch_size, ...]` of another core; `()` for feed-forward
    agents.
    """
    return self._core.initial_state(batch_size) if self._core else ()

  @property
  def state_names(self) -> tuple[str, ...]:
    """A name for each array of the recurrent state."""
    return self._core.state_names if self._core else ()

  def tokenize(self, env_outputs: structs.StepOutput) -> structs.StepOutput:
    """Replaces instructions, strings `[...]`, by numbers, int32 `[..., W]`.

    Leaves instructions out if the agent sees none. Returns `env_outputs` itself
    if there is nothing to replace. `unroll` and `step` also tokenize, but
    within a `tf.function` strings are a ValueError: tokenize the function's
    arguments.
    """
    observation = env_outputs.observation
    if (not isinstance(observation, collections.abc.Mapping)
        or 'instruction' not in observation):
      return env_outputs
    if self._instruction_encoder is None:
      return env_outputs._replace(observation={
          name: part for name, part in observation.items()
          if name != 'instruction'})
    instruction = observation['instruction']
    if tf.as_dtype(instruction.dtype) != tf.string:
      return env_outputs
    if tf.is_symbolic_tensor(instruction):
      raise ValueError('Words cannot be hashed within a tf.function: '
                       'call agent.tokenize on its arguments.')
    return env_outputs._replace(observation=dict(
        observation, instruction=instructions.hash_words(instruction)))

  def step(self, last_action: tf.Tensor, env_output: structs.StepOutput,
           core_state: structs.State, greedy: bool = False,
           ladder: tf.Tensor | None = None
           ) -> tuple[structs.AgentOutput, structs.State]:
    """Chooses actions for single steps; also returns the next recurrent state.

    Args:
      last_action: `[B, ...]`, the actions that led to `env_output`.
      env_output: `StepOutput` of `[B, ...]`; `for_agent` has the fields in use.
      core_state: the recurrent state, see `initial_state`.
      greedy: whether to take the best known actions, without exploration.
      ladder: see `explore`.
    """
    add_time = lambda tensor: tf.expand_dims(tensor, 0)
    outputs, core_state = self.unroll(
        add_time(last_action),
        tf.nest.map_structure(add_time, env_output.for_agent()),
        core_state)
    params = outputs.policy[0]
    action = (self.head.distribution(params).mode() if greedy
              else self.explore(params, self._random_ints([3, 2], tf.int32),
                                masks.of(env_output.observation), ladder))
    kept = (params, outputs.baseline[0]) if self._baseline else ((), ())
    return structs.AgentOutput(action, *kept), core_state

  def unroll(self, last_actions: tf.Tensor, env_outputs: structs.StepOutput,
             core_state: structs.State
             ) -> tuple[structs.AgentOutput, structs.State]:
    """Evaluates the agent on unrolls, without a choice of actions.

    Args:
      last_actions: `[T, B, ...]`, the actions that led to `env_outputs`.
      env_outputs: `StepOutput` of `[T, B, ...]`; `for_agent` has the fields in
        use. Where `done[t]`, the recurrent state is zeroed before step `t`.
      core_state: the recurrent state before the first step.

    Returns:
      `AgentOutput` of `[T, B, ...]` without actions, and the recurrent state
      after the last step.
    """
    env_outputs = self.tokenize(env_outputs)
    num_steps, batch_size = tf.keras.ops.shape(env_outputs.reward)
    split = lambda x: _reshape_leading(x, 1, [num_steps, batch_size])
    features, core_state = self._unroll_core(
        last_actions, env_outputs, core_state)
    return structs.AgentOutput(
        action=(),
        policy=masks.masked(split(self._params(features)),
                            masks.of(env_outputs.observation)),
        baseline=(split(self._values(features)[:, 0])
                  if self._baseline else ())), core_state

  def _values(self, features: tf.Tensor) -> tf.Tensor:
    """Returns the baseline of features `[N, F]`."""
    assert self._baseline
    return self._baseline(self._baseline_torso(features)
                          if self._baseline_torso else features)

  def remember(self, last_actions: tf.Tensor, env_outputs: structs.StepOutput,
               core_state: structs.State) -> tuple[structs.Nest, structs.State]:
    """Returns the input of `params` and of critics; only with a memory.

    Args as of `unroll`. Returns features `[T * B, F]`, in a dictionary with the
    mask if there is one, and the state after the last step.
    """
    features, core_state = self._unroll_core(
        last_actions, env_outputs, core_state)
    mask = masks.of(env_outputs.observation)
    return features if mask is None else {
        'features': features, masks.NAME: _merge(mask)}, core_state

  def _unroll_core(
      self, last_actions: tf.Tensor, env_outputs: structs.StepOutput,
      core_state: structs.State) -> tuple[tf.Tensor, structs.State]:
    """Returns features `[T * B, F]`, and the state after the last step."""
    features = self._features(
        _merge(last_actions), _merge(env_outputs.reward),
        tf.nest.map_structure(_merge, env_outputs.observation))
    if self._core:
      seen = _reshape_leading(
          features, 1, tf.keras.ops.shape(env_outputs.reward))
      core_output, core_state = self._core(seen, core_state, env_outputs.done)
      output = _merge(core_output)
      features = (tf.concat([output, features], axis=-1) if self._has_skip
                  else output)
    return features, core_state

  def explore(self, params: tf.Tensor, seeds: tf.Tensor,
              mask: tf.Tensor | None = None,
              ladder: tf.Tensor | None = None) -> tf.Tensor:
    """Chooses actions `[B, ...]` as in training, for parameters `[B, P]`.

    The same `seeds`, integers `[3, 2]`, give the same actions. `mask` is that
    of the parameters, if any. The probability of a random action is `epsilon`,
    or if larger that of `ladder`, float32 `[B]`.
    """
    action_seed, which_seed, random_seed = tf.unstack(seeds)
    action = self.head.distribution(params).sample(action_seed)
    if self.epsilon is None:
      return action
    batch_size = tf.shape(params)[0]
    axes = [1] * (action.shape.rank - 1)
    is_random = tf.random.stateless_uniform([batch_size, *axes], which_seed) < (
        self.epsilon if ladder is None else
        tf.reshape(tf.maximum(self.epsilon, ladder), [-1, *axes]))
    return tf.where(is_random, heads.uniform_actions(
        self.action_spec, batch_size, random_seed) if mask is None else
        heads.policy(self.action_spec).distribution(masks.masked(
            tf.zeros_like(params), mask)).sample(random_seed), action)

  def set_epsilon(self, value: float | tf.Tensor) -> None:
    """Sets the probability of a uniformly random action."""
    if self.epsilon is None:
      raise ValueError('This agent has no epsilon.')
    self.epsilon.assign(value)

  def params(self, observations: structs.Nest) -> tf.Tensor:
    """Returns the head's parameters `[N, P]` for observations `[N, ...]`.

    For an agent with a memory, `observations` are from `remember`. An agent
    without a memory must see just the observation.
    """
    seen, _ = instructions.split(observations)
    if not self._core:
      seen = tf.cast(self._see(seen), tf.float32)
    return masks.masked(self._params(seen), masks.of(observations))

  def _see(self, observations: structs.Nest) -> tf.Tensor:
    """Returns features of observations without instructions."""
    if self.observation_normaliser:
      observations = self.observation_normaliser(observations)
    with tf.name_scope('torso'):  # A layer of a user may have any name.
      return self.torso(observations)

  def _features(self, last_action: tf.Tensor, reward: tf.Tensor,
                observation: structs.Nest) -> tf.Tensor:
    """Returns float32 `[N, F]`, the input of the core for `N` steps."""
    seen, instruction = instructions.split(observation)
    features = [self._see(seen)]
    if self._use_last_action_reward:
      features.append(tf.clip_by_value(reward, -1., 1.)[:, tf.newaxis])
      features += _action_features(self.action_spec, last_action)
    if self._instruction_encoder:
      features.append(self._instruction_encoder(instruction))
    return tf.concat([tf.cast(f, tf.float32) for f in features], axis=-1)


def _action_features(
    action_spec: structs.ActionSpec, actions: tf.Tensor) -> list[tf.Tensor]:
  """Returns actions `[N, ...]` as inputs of an agent, a list of `[N, F]`."""
  if action_spec.size:
    return [tf.clip_by_value(actions, -1.0, 1.0)]
  parts = ([actions] if len(action_spec.num_values) == 1
           else tf.unstack(actions, axis=-1))
  return [tf.one_hot(part, num_values) for part, num_values
          in zip(parts, action_spec.num_values, strict=True)]


def _merge(tensor: tf.Tensor) -> tf.Tensor:
  """Returns `[T * B, ...]` of `[T, B, ...]`."""
  return _reshape_leading(tensor, 2, [-1])


def _reshape_leading(tensor: tf.Tensor, num_axes: int,
                     shape: Sequence[int | tf.Tensor]) -> tf.Tensor:
  """Reshapes the first `num_axes` axes."""
  return tf.reshape(tensor, [*shape, *tf.keras.ops.shape(tensor)[num_axes:]])
