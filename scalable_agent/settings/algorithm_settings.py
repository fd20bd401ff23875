# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Settings of the algorithms: rewards, losses, targets, exploration."""

import dataclasses

from scalable_agent.settings.declare import BELOW_ONE
from scalable_agent.settings.declare import By
from scalable_agent.settings.declare import Check
from scalable_agent.settings.declare import CONTINUOUS
from scalable_agent.settings.declare import COUNT
from scalable_agent.settings.declare import FINITE
from scalable_agent.settings.declare import FRACTION
from scalable_agent.settings.declare import IS_SCALE
from scalable_agent.settings.declare import Needs
from scalable_agent.settings.declare import NOT_NEGATIVE
from scalable_agent.settings.declare import OFF_POLICY
from scalable_agent.settings.declare import POSITIVE
from scalable_agent.settings.declare import Section
from scalable_agent.settings.declare import setting
from scalable_agent.settings.declare import VTRACE
from scalable_agent.settings.declare import WITH_CRITICS

# Algorithms with --target_update_period.
_WITH_PERIOD = ('ddqn', 'sac', 'mpo')
# Values of --correction, see `algorithms.impala`.
CORRECTIONS = ('vtrace', 'one_step', 'epsilon', 'none')
_VTRACE = Needs('correction', ('vtrace',))
_IS_COST = Check[float](lambda x: x >= 0 or x == -1, 'must not be negative')


@dataclasses.dataclass(frozen=True, kw_only=True)
class RewardSettings(Section):
  """Rewards as the learner sees them: discounted, perhaps clipped."""
  discounting: float = setting(
      0.99, 'Discount per agent step (gamma).', FRACTION)
  reward_clipping: str = setting(
      By({'impala on Atari': 'abs_one', 'impala on DeepMind Lab': 'abs_one',
          'Atari': 'abs_one', 'others': 'none'}),
      'Clipping of rewards for learning. none: no clipping. abs_one: to [-1, '
      '1]. soft_asymmetric: squashed to [-1.5, 5], where negative rewards are '
      'multiplied by 0.3.', choices=('none', 'abs_one', 'soft_asymmetric'))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImpalaSettings(RewardSettings):
  """The losses of IMPALA and APPO."""
  entropy_cost: float | None = setting(
      By(impala=0.00025, appo=-1.),
      'Weight of the entropy loss. -1 with appo: 0.01 for discrete and 0 for '
      'continuous actions.', _IS_COST, algorithms=VTRACE)
  baseline_cost: float = setting(
      0.5,
      'Weight of the baseline loss (of the value function).', NOT_NEGATIVE,
      algorithms=VTRACE)
  squash_actions: bool | None = setting(
      By(impala=True, appo=False),
      'Map samples of the Gaussian policy to [-1, 1] by tanh. If off, '
      'environments clip the actions.', algorithms=VTRACE,
      actions='continuous')
  bootstrap_truncated: bool | None = setting(
      By(impala=False, appo=True),
      'If a time limit cuts an episode off, add the value of the last '
      "observation to the return. If off, as in DeepMind's code, a time limit "
      'ends the return.', algorithms=VTRACE)
  correction: str = setting(
      'vtrace',
      'Off-policy correction (table 2 of the IMPALA paper). vtrace: V-trace. '
      'one_step: importance weights in the policy loss only. none: no '
      'correction. epsilon: no correction, but 1e-6 is added to the '
      'probabilities in the policy loss.', choices=CORRECTIONS,
      algorithms=('impala',))
  lambda_: float | None = setting(
      By(impala=1., appo=.95),
      'V-trace: lambda, a factor of the trace coefficients. Smaller values '
      'shorten traces.', FRACTION, algorithms=VTRACE, needs=_VTRACE)
  clip_rho: float = setting(
      1.,
      'V-trace: upper bound of the importance weights in the targets of the '
      'baseline (rho bar).', POSITIVE, algorithms=VTRACE, needs=_VTRACE)
  clip_c: float = setting(
      1.,
      'V-trace: upper bound of the trace coefficients (c bar).', POSITIVE,
      algorithms=VTRACE, needs=_VTRACE)
  clip_pg_rho: float = setting(
      1.,
      'V-trace: upper bound of the importance weights in the policy loss.',
      POSITIVE, algorithms=('impala',), needs=_VTRACE)
  reduction: str | None = setting(
      By(impala='sum', appo='mean'),
      'Reduction of the loss over the steps of a batch: sum or mean. The '
      'learning rate of the IMPALA paper is for the sum.',
      choices=('sum', 'mean'), algorithms=VTRACE)
  passes: int | None = setting(
      By({'appo with LSTM': 2, 'appo': 4}),
      'Number of times that each unroll is learned from. The targets of '
      'V-trace are computed anew each time.', POSITIVE, COUNT,
      algorithms=('appo',), unless='replay_capacity')
  clip_ratio: float | None = setting(
      By({'appo on Atari': .1, 'appo': .2}),
      'Clip of the importance weight of an action. A step has no gradient if '
      'its advantage is positive and its weight above 1 + c, or if its '
      'advantage is negative and its weight below 1 - c, where c is this '
      'number.', POSITIVE, BELOW_ONE, algorithms=('appo',))
  clip_value: float = setting(
      0.,
      'Largest useful change of a value since the actor computed this value, '
      'in standard deviations of returns (without --normalise_returns: of '
      'reward). 0 for no clip.', NOT_NEGATIVE, algorithms=('appo',))
  kl_cost: float = setting(
      0.,
      'Weight of the mean KL between the policy that acted (or the target '
      'policy, see --target_policy_period) and the policy that learns.',
      NOT_NEGATIVE, algorithms=('appo',))
  target_policy_period: int = setting(
      0,
      'Updates between two copies of the policy to a target policy, as in '
      'IMPACT: --clip_ratio limits the change from this target policy. 0 for '
      'the change from the policy that acted.', NOT_NEGATIVE,
      algorithms=('appo',))
  normalise_advantages: bool = setting(
      False,
      'Normalise the advantages of each update to mean 0 and standard '
      'deviation 1. Needs the whole batch at once.', algorithms=('appo',))


@dataclasses.dataclass(frozen=True, kw_only=True)
class OffPolicySettings(RewardSettings):
  """Losses, target networks and exploration of DDQN, DDPG, TD3, SAC, MPO."""
  target_update_rate: float | None = setting(
      By(ddqn=1., mpo=1., others=.005),
      'tau: each move sets the target networks to (1 - tau) x target networks '
      '+ tau x learned networks. Critics learn from the values of target '
      'networks. 1 for a copy; 1 is also the default with a '
      '--target_update_period above 1.', POSITIVE, FRACTION,
      algorithms=OFF_POLICY)
  target_update_period: int | None = setting(
      By({'ddqn with LSTM': 100, 'ddqn': 1000, 'mpo': 100, 'others': 1}),
      'Number of updates between two moves of the target networks. With a '
      '--target_update_rate below 1, the default is 1.', POSITIVE,
      algorithms=_WITH_PERIOD)
  critic_learning_rate: float = setting(
      0.,
      'Learning rate of the critics; 0 for --learning_rate.', NOT_NEGATIVE,
      algorithms=WITH_CRITICS)
  memory_learning_rate: float = setting(
      0.,
      'With --use_lstm: learning rate of the LSTM and of the layers below; 0 '
      'for the learning rate of the critics.', NOT_NEGATIVE,
      algorithms=WITH_CRITICS)
  num_critics: int | None = setting(
      By(mpo=1, others=2),
      "Number of critics. Targets use the minimum of the critics' values.",
      POSITIVE, algorithms=('td3', 'sac', 'mpo'))
  double_q: bool = setting(
      True,
      'Double Q-learning: the learned network chooses the best next action, '
      'and the target network gives its value. If off, the target network does '
      'both, as in DQN.', algorithms=('ddqn',))
  dueling: bool = setting(
      False,
      'Dueling network: the outputs are the value of an observation and the '
      'advantage of each action, which are added.', algorithms=('ddqn',))
  value_rescaling: bool = setting(
      False,
      'Learn values on the scale sign(x) (sqrt(|x| + 1) - 1) + 0.001 x, as in '
      'R2D2, so that large rewards need no clipping: on Atari, add '
      '--reward_clipping=none.', algorithms=('ddqn',))
  huber_delta: float = setting(
      0.,
      'Huber loss: quadratic for errors up to this size, linear for larger '
      'errors. 0 for a quadratic loss everywhere.', NOT_NEGATIVE,
      algorithms=('ddqn',))
  exploration_epsilon_begin: float = setting(
      1.,
      'Probability of a random action at frame 0. Before the first update, all '
      'actions are random.', FRACTION, algorithms=('ddqn',),
      unless='exploration_ladder')
  exploration_epsilon_end: float = setting(
      .05,
      'Smallest probability of a random action, reached at the end of '
      'exploration.', FRACTION, algorithms=('ddqn',),
      unless='exploration_ladder')
  exploration_fraction: float = setting(
      .1,
      'Share of --total_environment_frames over which the probability of a '
      'random action decreases linearly from --exploration_epsilon_begin to '
      '--exploration_epsilon_end.', FRACTION, algorithms=('ddqn',),
      unless='exploration_decay')
  exploration_decay: float = setting(
      0.,
      'Factor by which each update multiplies the probability of a random '
      'action, such as 0.999. 0 for a linear decrease, see '
      '--exploration_fraction.', FRACTION, algorithms=('ddqn',),
      unless='exploration_ladder')
  exploration_ladder: bool = setting(
      False,
      'Each environment has its own constant probability of a random action, '
      'as in Ape-X and R2D2: 0.4^(1 + 7 i / (N - 1)) for environment i of N = '
      '--num_actors, from 0.4 to 0.0007. For many environments.',
      algorithms=('ddqn',))
  sequence_length: int = setting(
      20,
      'With --use_lstm: number of steps in a row that are learned from, in '
      'each of the sequences of a batch.', POSITIVE, COUNT,
      algorithms=OFF_POLICY)
  burn_in_steps: int | None = setting(
      By({'off-policy with LSTM': 20, 'others': 0}),
      'With --use_lstm: number of steps before each sequence that only warm up '
      'the state of the LSTM and are not learned from. The agent can learn to '
      'remember about --burn_in_steps + --sequence_length steps.',
      NOT_NEGATIVE, COUNT, algorithms=OFF_POLICY)
  exploration_noise: float = setting(
      .1,
      'Standard deviation of the noise that is added to actions to explore. '
      'Actions are within [-1, 1].', NOT_NEGATIVE, algorithms=CONTINUOUS)
  policy_delay: int = setting(
      2,
      'The policy learns, and the target networks move, in every n-th update, '
      'where n is this number.', POSITIVE, algorithms=('td3',))
  target_noise: float = setting(
      .2,
      'Standard deviation of the noise that is added to the actions of the '
      'target policy.', NOT_NEGATIVE, algorithms=('td3',))
  target_noise_clip: float = setting(
      .5,
      'Largest absolute value of the noise of --target_noise.', NOT_NEGATIVE,
      algorithms=('td3',))
  initial_temperature: float | None = setting(
      By(sac=1., mpo=10.),
      'Temperature at the start. SAC: alpha, the weight of the entropy. MPO: '
      'eta.', POSITIVE, algorithms=('sac', 'mpo'), unless='exact_temperature')
  temperature_learning_rate: float | None = setting(
      By(mpo=.01, sac=.0003),
      'Learning rate of the temperature; with mpo also of the weights of the '
      'KL terms.', NOT_NEGATIVE, algorithms=('sac', 'mpo'))
  target_entropy_ratio: float = setting(
      .7,
      'Target entropy, as a share of the entropy of uniformly random actions. '
      'Larger values explore more. The paper of discrete SAC has 0.98; with '
      '0.98 and few actions, the temperature grows without bound.', FRACTION,
      algorithms=('sac',), actions='discrete')
  target_entropy_per_part: float = setting(
      -1.,
      'Target entropy per action dimension. Larger values explore more; '
      'negative values are possible.', FINITE, algorithms=('sac',),
      actions='continuous')
  num_samples: int = setting(
      20,
      'Number of actions that are sampled for each observation. For the value '
      'of the next observation, a quarter is sampled.', POSITIVE,
      algorithms=('mpo',), actions='continuous')
  epsilon_temperature: float = setting(
      .1,
      'Bound of the mean KL between the target policy and the improved policy, '
      'which the policy learns.', POSITIVE, algorithms=('mpo',))
  epsilon_mean: float = setting(
      .0025,
      'Bound of the mean KL between the target policy and the policy: for '
      'continuous actions, for the mean of each action dimension; for discrete '
      'actions, of the whole KL.', POSITIVE, algorithms=('mpo',))
  epsilon_scale: float = setting(
      1e-6,
      'Bound of the mean KL between the target policy and the policy, for the '
      'standard deviation of each action dimension.', POSITIVE,
      algorithms=('mpo',), actions='continuous')
  epsilon_bounds: float = setting(
      .001,
      'KL bound of the objective that keeps actions within [-1, 1].', POSITIVE,
      algorithms=('mpo',), actions='continuous')
  initial_mean_multiplier: float = setting(
      10.,
      'Weight of the KL of --epsilon_mean at the start; the weight is learned.',
      POSITIVE, algorithms=('mpo',))
  initial_scale_multiplier: float = setting(
      1000.,
      'Weight of the KL of --epsilon_scale at the start; the weight is '
      'learned.', POSITIVE, algorithms=('mpo',), actions='continuous')
  initial_scale: float = setting(
      1.,
      'Approximate standard deviation of actions at the start. Actions are '
      'within [-1, 1].', IS_SCALE, algorithms=('appo', 'mpo'),
      actions='continuous')
  exact_temperature: bool = setting(
      False,
      'Compute the temperature exactly in each update. If off, the temperature '
      'is learned.', algorithms=('mpo',))

  def __post_init__(self) -> None:
    rate, period = (getattr(self, name) for name in (
        'target_update_rate', 'target_update_period'))
    super().__post_init__()
    self._check_unset('exploration_fraction', self.exploration_ladder,
                      'has no effect with --exploration_ladder')
    if self.algorithm not in _WITH_PERIOD:
      return
    # Small moves now and then would hardly move the targets.
    if period is None and rate is not None and rate < 1:
      object.__setattr__(self, 'target_update_period', 1)
    if rate is None and period is not None and period > 1:
      object.__setattr__(self, 'target_update_rate', 1.)
