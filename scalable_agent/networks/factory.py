# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Makes agents and critics, with all variables, from specs and options."""

from collections.abc import Callable, Sequence
import functools
import random

from scalable_agent.experience import structs
from scalable_agent.networks import agents
from scalable_agent.networks import cores
from scalable_agent.networks import critics
from scalable_agent.networks import distributions
from scalable_agent.networks import heads
from scalable_agent.networks import instructions
from scalable_agent.networks import layers
from scalable_agent.networks import normalisers
from scalable_agent.networks import pop_art
from scalable_agent.networks import torsos
import tensorflow as tf


def make_agent(network: str, observation_spec: structs.ObservationSpec,
               action_spec: structs.ActionSpec,
               head: heads.Head | None = None, *,
               hidden_sizes: Sequence[int] = (64, 64), activation: str = 'tanh',
               layer_norm: bool = False, is_dueling: bool = False,
               has_baseline: bool = True, has_epsilon: bool = False,
               use_lstm: bool = True, core: str = 'lstm', lstm_units: int = 256,
               has_critics: bool = False, use_last_action_reward: bool = True,
               use_instruction: bool = True,
               observation_normaliser: (
                   normalisers.ObservationNormaliser | None) = None,
               normalise_returns: bool = False, policy_scale: float = 1.,
               return_levels: Sequence[str] = (), scale_from_state: bool = True,
               separate_baseline: bool = False,
               seed: int | None = None) -> agents.Agent:
  """Makes an agent with all its variables.

  `deep` with everything on is the paper's agent for DMLab-30.

  Args:
    network: `deep` (ResNet), `shallow` (two convolutions) or `nature` (three)
      for frames, `mlp` for vectors and tiny images. `module:function` is a
      function of the user. The function gets the observation spec of the agent
      (an `ArraySpec` or a dictionary of specs, without text and mask) and
      returns a Keras layer or model that maps observations `[N, ...]` to
      features, float `[N, F]`.
    observation_spec: an `ArraySpec`, or a dictionary of specs: frames (uint8 or
      float, `[H, W, C]` or `[C, H, W]`), vectors, and perhaps `instruction`
      (string). The agent does not see `achieved_goal`, only `observation` and
      `desired_goal`.
    action_spec: spec of the actions.
    head: turns the network's output into actions; None for `heads.policy`.
    hidden_sizes: units of the dense layers of `mlp`, of the layers that join
      frames with other arrays of an observation, and of `separate_baseline`.
    activation: `tanh` or `relu`, the activation of the dense layers.
    layer_norm: see `torsos.MLPTorso`.
    is_dueling: whether parameters are from `layers.Dueling`.
    has_baseline: whether there is a baseline.
    has_epsilon: see `agents.Agent`.
    use_lstm: whether there is a recurrent core.
    core: `lstm`, `gru`, or `module:function`, a function of the user. The
      function gets `lstm_units` and returns a Keras cell, a layer that maps
      inputs `[B, I]` and a state to outputs `[B, F]` and the next state.
    lstm_units: units of the core.
    has_critics: with a core, whether critics see the same features. Then these
      are of one dense layer and the core, and the head has `hidden_sizes`.
    use_last_action_reward: see `agents.Agent`.
    use_instruction: whether the agent sees instructions.
    observation_normaliser: see `agents.Agent`.
    normalise_returns: whether the baseline is a `pop_art.PopArt`.
    return_levels: names of several levels with statistics of returns each.
    policy_scale: factor of the initial weights of the policy's layer.
    scale_from_state: whether the logarithms of standard deviations, the second
      half of the parameters of continuous actions, depend on the observation.
    separate_baseline: whether policy and baseline have `hidden_sizes` each,
      and share only the layers for frames and instructions, or of the user;
      without a core.
    seed: seed of the initial weights and of the choice of actions. Agents that
      act at the same time need different seeds. None for a seed from Python's
      `random`, which `tf.keras.utils.set_random_seed` seeds.

  Raises:
    ConfigError: the network is unknown or does not fit the observations.
    UserCodeError: the function of the user raises an error.
  """
  head = head or heads.policy(action_spec)
  observation_spec, instruction_spec = instructions.split(observation_spec)
  instruction_spec = instruction_spec if use_instruction else None
  seed = random.randrange(2**31) if seed is None else seed
  initializer_seed = tf.keras.random.SeedGenerator(seed)
  # With heads of zeros, the baseline finds the mean return before a gradient of
  # the baseline reaches the torso. Otherwise this gradient kills relu units.
  has_zero_heads = has_baseline and network in ('shallow', 'nature')
  initializer = ('zeros' if has_zero_heads else
                 layers.FanInTruncatedNormal(initializer_seed))
  # The heads and the loss are float32 under any dtype policy.
  dense = lambda units, name, bias='zeros', kernel=initializer: (
      tf.keras.layers.Dense(
          units, dtype='float32', name=name, kernel_initializer=kernel,
          bias_initializer=bias))
  mlp = lambda sizes: torsos.MLPTorso(
      sizes, activation, initializer_seed, layer_norm)
  num_shared = (1 if use_lstm and has_critics else
                0 if separate_baseline else None)
  torso = torsos.make(network, observation_spec, initializer_seed,
                      mlp(hidden_sizes[:num_shared]))
  baseline = pop_art.PopArt(
      dense(len(return_levels) or 1, 'baseline', kernel='zeros'), return_levels
  ) if normalise_returns else dense(1, 'baseline') if has_baseline else None
  if not has_zero_heads and policy_scale != 1.:
    initializer = layers.FanInTruncatedNormal(initializer_seed, policy_scale)
  params = (
      layers.Dueling(dense(1, 'value'), dense(head.num_params, 'advantages'))
      if is_dueling else _params(
          functools.partial(dense, kernel=initializer), head,
          action_spec.size if not scale_from_state else 0))
  if num_shared is not None:
    params = tf.keras.Sequential([mlp(hidden_sizes), params])
  agent = agents.Agent(
      torso, action_spec, head, params, baseline=baseline,
      instruction_encoder=(
          instructions.InstructionEncoder(initializer_seed)
          if instruction_spec is not None else None),
      core=cores.make(core, lstm_units, initializer_seed) if use_lstm else None,
      has_skip=num_shared == 1,
      baseline_torso=mlp(hidden_sizes) if separate_baseline else None,
      use_last_action_reward=use_last_action_reward, has_epsilon=has_epsilon,
      action_seed=seed, observation_normaliser=observation_normaliser)
  _make_variables(agent, observation_spec, instruction_spec)
  return agent


def _params(dense: Callable[..., tf.keras.layers.Dense], head: heads.Head,
            num_scales: int) -> tf.keras.layers.Layer:
  """Returns the layer of a head's parameters.

  The last `num_scales` parameters do not depend on the features.
  """
  bias = head.initial_bias
  if num_scales:
    assert bias is not None
    return layers.StateIndependentScale(
        dense(num_scales, 'policy_logits'), bias[num_scales:],
        distributions.LOG_SCALE_BOUNDS)
  return dense(head.num_params, 'policy_logits', 'zeros' if bias is None else
               lambda _, dtype: tf.constant(bias, dtype))


def make_critic(network: str, observation_spec: structs.ObservationSpec,
                action_spec: structs.ActionSpec, *,
                hidden_sizes: Sequence[int], activation: str, seed: int,
                layer_norm: bool = False,
                observation_normaliser: (
                    normalisers.ObservationNormaliser | None) = None
                ) -> critics.Critic:
  """Makes a critic with all its variables, see `make_agent`.

  For discrete actions of one part, the critic returns the values of all
  actions; for continuous actions, the value of a given action.
  """
  observation_spec, _ = instructions.split(observation_spec)
  initializer_seed = tf.keras.random.SeedGenerator(seed)
  num_values = 1 if action_spec.size else action_spec.num_values[0]
  critic = critics.Critic(
      torsos.make(
          network, observation_spec, initializer_seed,
          torsos.MLPTorso(
              hidden_sizes, activation, initializer_seed, layer_norm),
          with_actions=bool(action_spec.size)),
      tf.keras.layers.Dense(
          num_values, dtype='float32', kernel_initializer=(
              layers.FanInTruncatedNormal(initializer_seed))),
      observation_normaliser)
  actions = tf.zeros([1, action_spec.size]) if action_spec.size else None
  critic(torsos.zeros([1], observation_spec), actions)
  return critic


def _make_variables(
    agent: agents.Agent, observation_spec: structs.ObservationSpec,
    instruction_spec: structs.ArraySpec | None) -> None:
  """Makes all variables: evaluates the agent on one step of zeros."""
  observation = torsos.zeros([1, 1], observation_spec)
  if instruction_spec is not None:
    observation = {**(observation if isinstance(observation, dict)
                      else {'frame': observation}),
                   'instruction': torsos.zeros([1, 1], instruction_spec)}
  agent.unroll(
      torsos.zeros([1, 1], agent.action_spec.array),
      structs.StepOutput(reward=tf.zeros([1, 1]), info=structs.NO_INFO,
                         done=tf.zeros([1, 1], tf.bool),
                         observation=observation),
      agent.initial_state(1))
  agent.built = True
