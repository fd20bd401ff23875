# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Interface of algorithms for the learner: losses by group of variables.

A group is a list of variables with one optimizer. IMPALA has one group, an
actor-critic of the off-policy family has two or three, one more with an LSTM.

`K` is the number of updates that the learner makes in one call, `B` the batch
size.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from scalable_agent import errors
from scalable_agent.experience import structs
from scalable_agent.losses import actor_critic
from scalable_agent.losses import q_learning
from scalable_agent.networks import agents
from scalable_agent.networks import critics
from scalable_agent.networks import heads
from scalable_agent.networks import torsos
from scalable_agent.settings import declare
from scalable_agent.settings.agent_settings import AgentSettings
from scalable_agent.settings.algorithm_settings import OffPolicySettings
import tensorflow as tf
import tree

# Makes an agent with the head of the algorithm's `make_head`.
MakeAgent: TypeAlias = Callable[[], agents.Agent]
# Makes a critic for an agent, whose features a critic of a memory sees. The
# number is that of the critic, for the seed.
MakeCritic: TypeAlias = Callable[[agents.Agent, int], critics.Critic]


class Loss(NamedTuple):
  """The losses of a batch, and scalars for the log.

  Attributes:
    by_group: a scalar loss for each group that learns, by name of the group.
      The loss changes only the variables of the group.
    sums: scalars for the log, by name: sums over the batch.
    means: scalars for the log, by name: means over the batch.
    errors: float32 `[B]`, absolute errors, for a prioritised replay; None if
      the algorithm has no errors.
    targets: float32 `[T, B]`, targets of a baseline with statistics of returns,
      which move the statistics; else None.
  """
  by_group: Mapping[str, tf.Tensor]
  sums: Mapping[str, tf.Tensor]
  means: Mapping[str, tf.Tensor]
  errors: tf.Tensor | None = None
  targets: tf.Tensor | None = None


class Progress(NamedTuple):
  """Counts of updates and received environment frames, int64 scalars."""
  num_updates: tf.Tensor
  num_env_frames: tf.Tensor


class Algorithm(Protocol):
  """A learning rule and its variables.

  Attributes:
    agent: the agent that acts. The learner publishes the agent's variables.
    groups: variables that the losses change, by name of the group.
    delayed: names of groups that learn only in every `delay`-th update; none
      by default.
    delay: number of updates.
    targets: variables that no loss changes, such as target networks. The
      learner saves but never publishes `targets`.
  """
  agent: agents.Agent
  groups: dict[str, list[tf.Variable]]
  delayed: tuple[str, ...] = ()
  delay: int = 1
  targets: list[tf.Variable]

  def loss(self, data: structs.Nest, importance_weights: tf.Tensor | None,
           groups: Collection[str], seed: tf.Tensor) -> Loss:
    """Computes the losses of a batch; called within a `tf.function`.

    Args:
      data: an `Unroll`, a `Transition`, or a `Sequence`.
      importance_weights: float32 `[B]`, factors of the losses; None for ones.
      groups: the groups that learn in this update.
      seed: int32 `[2]`, different in each update.
    """

  def after_update(self, groups: Collection[str], progress: Progress) -> None:
    """Updates targets and exploration; called within a `tf.function`.

    `groups` learned. The counts of `progress` contain this update. The default
    does nothing.
    """
    del groups, progress


def memory_group(agent: agents.Agent) -> dict[str, list[tf.Variable]]:
  """Returns the group `memory`, which learns from the critics' loss, if any."""
  return {'memory': agent.memory_variables} if agent.has_memory else {}


def with_memory(losses: Mapping[str, tf.Tensor],
                agent: agents.Agent) -> Mapping[str, tf.Tensor]:
  """Returns the losses by group, with the loss of `memory_group`."""
  return ({**losses, 'memory': losses['critic']} if agent.has_memory
          else losses)


class Evaluated(NamedTuple):
  """Unrolls as the agent sees them now; entry `t` belongs to observation `t`.

  Attributes:
    policy: the policy `pi` that learns.
    behaviour_policy: the policy `mu` that acted.
    behaviour: action, parameters and baseline of the actor, `[T, B, ...]`.
    log_probs: float32 `[T, B]`, logarithms of `pi(a_t | x_t)`.
    log_rhos: float32 `[T, B]`, `log_probs` minus those of `mu`.
    baseline: float32 `[T, B]`.
    bootstrap_value: float32 `[B]`.
    rewards: float32 `[T, B]`, clipped; the value of a truncated episode's last
      observation is added.
    discounts: float32 `[T, B]`, 0 where an episode ended.
  """
  policy: heads.Policy
  behaviour_policy: heads.Policy
  behaviour: structs.AgentOutput
  log_probs: tf.Tensor
  log_rhos: tf.Tensor
  baseline: tf.Tensor
  bootstrap_value: tf.Tensor
  rewards: tf.Tensor
  discounts: tf.Tensor


def evaluate(agent: agents.Agent, data: structs.Unroll, discounting: float,
             reward_clipping: str) -> Evaluated:
  """Evaluates an agent with a baseline on unrolls."""
  env_outputs, agent_outputs, truncation_values = data.steps
  learner_outputs, _ = agent.unroll(
      agent_outputs.action, env_outputs, data.start.agent_state)
  # Of several levels, each column has the value of its level.
  of_level = lambda x: agent.returns.of_levels(
      x, data.start.level_name) if agent.returns else x
  values = of_level(learner_outputs.baseline)
  bootstrap_value = values[-1]

  # Entry t + 1 holds the action that was chosen at observation t, its reward
  # and whether it ended the episode. Entry t of the learner's outputs belongs
  # to observation t.
  agent_outputs = agent_outputs._replace(
      baseline=of_level(agent_outputs.baseline))
  behaviour = tree.map_structure(lambda t: t[1:], agent_outputs)
  rewards = actor_critic.clip_rewards(env_outputs.reward[1:], reward_clipping)
  done = env_outputs.done[1:]
  policy = heads.policy_of(agent.head, learner_outputs.policy[:-1])
  baseline = values[:-1]
  discounts = tf.cast(~done, tf.float32) * discounting
  # Where a time limit truncates an episode, the value of the last observation
  # is added to the reward. The discount is 0, so the next episode has no
  # effect.
  rewards += discounting * of_level(truncation_values[1:])

  log_probs = policy.log_prob(behaviour.action)
  behaviour_policy = heads.policy_of(agent.head, behaviour.policy)
  log_rhos = log_probs - behaviour_policy.log_prob(behaviour.action)
  return Evaluated(policy, behaviour_policy, behaviour, log_probs, log_rhos,
                   baseline, bootstrap_value, rewards, discounts)


class Target:
  """A target network, whose weights follow the weights of an online network."""

  def __init__(self, model: tf.keras.Model, online: tf.keras.Model):
    """Copies the weights of `online` to `model`, of the same architecture.

    Variables that both models share, the statistics of observations, are left
    out.
    """
    self.model = model
    pairs = [(target, v) for target, v in zip(
        _floats(model), _floats(online), strict=True) if target is not v]
    self.variables = [target for target, _ in pairs]
    self._online = [v for _, v in pairs]
    self.follow(1.0)

  def follow(self, rate: float | tf.Tensor) -> None:
    """Moves the weights by the share `rate` towards the online weights."""
    for target, online in zip(self.variables, self._online, strict=True):
      target.assign(q_learning.incremental_update(target, online, rate))


class TargetPolicy(Target):
  """A copy of the policy that learns, of a number of updates before.

  Attributes:
    period: number of updates between two copies.
  """

  def __init__(self, model: agents.Agent, online: agents.Agent, period: int):
    """See `Target`; the two agents share no statistics."""
    super().__init__(model, online)
    self.period = period

  def of(self, data: structs.Unroll) -> heads.Policy:
    """Returns the policy at the entries 0 to `T - 1`, without gradients."""
    outputs, _ = self.model.unroll(
        data.steps.agent_outputs.action, data.steps.env_outputs,
        data.start.agent_state)
    return heads.policy_of(
        self.model.head, tf.stop_gradient(outputs.policy[:-1]))


def _floats(model: tf.keras.Model) -> list[tf.Variable]:
  """Returns the variables of floats: all but the states of seeds."""
  return [v for v in model.variables if tf.as_dtype(v.dtype).is_floating]


class Critics:
  """Several critics with their targets."""

  def __init__(self, make_critic: MakeCritic, agent: agents.Agent,
               number: int):
    """Makes `C` critics for an agent; `number` is `C`."""
    # Features of a memory are much larger than actions.
    self._has_products = agent.has_memory and agent.action_spec.size > 0
    self._critics = [make_critic(agent, i) for i in range(number)]
    self.first = self._critics[0]
    self._targets = [Target(make_critic(agent, i), critic)
                     for i, critic in enumerate(self._critics)]
    self.variables: list[tf.Variable] = [
        v for critic in self._critics for v in critic.trainable_variables]
    # Critics may have variables without gradients, such as running means.
    self.targets: list[tf.Variable] = [
        *(v for target in self._targets for v in target.variables),
        *(v for critic in self._critics
          for v in critic.non_trainable_variables)]

  def inputs(self, learned: structs.Nest, given: structs.Nest
             ) -> tuple[list[structs.Nest], list[structs.Nest]]:
    """Returns inputs of the critics: of actions in the batch, of the policy's.

    `learned` and `given` are equal, but no gradient flows from `given` to a
    memory. Both lists have an input for each critic.
    """
    inputs = [self._input(q, learned) for q in self._critics]
    if self._has_products:
      return inputs, tf.nest.map_structure(tf.stop_gradient, inputs)
    return inputs, [given for _ in self._critics]

  def _input(self, critic: critics.Critic,
             observation: structs.Nest) -> structs.Nest:
    return critic.product(observation) if self._has_products else observation

  def values(self, inputs: Sequence[structs.Nest],
             action: tf.Tensor | None = None) -> tf.Tensor:
    """Returns the values of all critics, float32 `[C, B]`.

    Args:
      inputs: an input for each critic, see `inputs`.
      action: continuous actions, float32 `[B, N]`. Without actions, the result
        is `[C, B, A]`, of all discrete actions.
    """
    return tf.stack([
        q(seen, action) for q, seen in zip(self._critics, inputs, strict=True)])

  def target_values(self, observation: structs.Nest,
                    action: tf.Tensor | None = None) -> tf.Tensor:
    """Returns the values of all targets, float32 `[C, B]` or `[C, B, A]`.

    Actions are as in `values`. There may be several actions for each
    observation: `[M * B, N]`, with the result `[C, M * B]`.
    """
    return tf.stack([
        q.model(self._input(q.model, observation), action)
        for q in self._targets])

  def follow(self, rate: float | tf.Tensor) -> None:
    """Moves the targets, see `Target.follow`."""
    for target in self._targets:
      target.follow(rate)


def follow_if_due(settings: OffPolicySettings, progress: Progress,
                  *targets: Target | Critics) -> None:
  """Moves targets in every `--target_update_period`-th update."""
  period = declare.used(settings.target_update_period)

  def move() -> tf.Tensor:
    for target in targets:
      target.follow(declare.used(settings.target_update_rate))
    return tf.constant(True)

  if period == 1:
    move()
  else:  # Between moves, no weight is read or written.
    tf.cond(progress.num_updates % period == 0, move,
            lambda: tf.constant(False))


def discrete_actions(spec: structs.ActionSpec, algorithm: str) -> int:
  """Returns the number of discrete actions; ConfigError for other kinds."""
  if len(spec.num_values) != 1:
    raise errors.ConfigError(
        f'--algorithm={algorithm} needs discrete actions of one part, but '
        f'the level has {in_words(spec)}: use --algorithm=impala'
        f'{", appo, sac, td3, ddpg or mpo" if spec.size else " or appo"}.')
  return spec.num_values[0]


def continuous_actions(spec: structs.ActionSpec, algorithm: str) -> int:
  """Returns the number of parts of continuous actions, else ConfigError."""
  if not spec.size:
    raise errors.ConfigError(
        f'--algorithm={algorithm} needs continuous actions, but the level has '
        f'{in_words(spec)}: use --algorithm=impala'
        + (', appo, ddqn, sac or mpo.' if len(spec.num_values) == 1
           else ' or appo.'))
  return spec.size


def in_words(spec: structs.ActionSpec) -> str:
  """Returns the kind of actions in words, for messages."""
  if spec.size:
    return f'continuous actions of {spec.size} numbers'
  if len(spec.num_values) == 1:
    return f'{spec.num_values[0]} discrete actions'
  return ('discrete actions of several parts, '
          + ' x '.join(map(str, spec.num_values)))


def has_dense_layers(settings: AgentSettings, algorithm: str,
                     spec: structs.EnvironmentSpec) -> bool:
  """Returns whether any network has the dense layers of `hidden_sizes`."""
  # Critics see continuous actions, or features of the memory.
  return (settings.separate_baseline
          or critics_share_memory(settings, algorithm)
          or torsos.has_dense_layers(
              settings.agent, spec.observation,
              bool(spec.action.size) and algorithm in declare.WITH_CRITICS))


def critics_share_memory(settings: AgentSettings, algorithm: str) -> bool:
  """Returns whether critics see the features of the agent's memory."""
  return bool(settings.use_lstm) and algorithm in declare.WITH_CRITICS
