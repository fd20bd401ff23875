# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Settings of the replay buffer."""

import dataclasses

from scalable_agent.settings.declare import By
from scalable_agent.settings.declare import COUNT
from scalable_agent.settings.declare import FRACTION
from scalable_agent.settings.declare import Needs
from scalable_agent.settings.declare import NOT_NEGATIVE
from scalable_agent.settings.declare import OFF_POLICY
from scalable_agent.settings.declare import POSITIVE
from scalable_agent.settings.declare import Section
from scalable_agent.settings.declare import setting
from scalable_agent.settings.declare import VTRACE

_PRIORITISED = Needs('selector', ('prioritised', 'recent_prioritised'))
_RECENT = Needs('selector', ('recent', 'recent_prioritised'))
# Values of --hindsight with other goals.
_GOALS = ('future', 'final', 'episode')
_REPLAY = Needs('replay_capacity')
_COLLECTIONS = Needs('unrolls_per_collect')


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplaySettings(Section):
  """The replay buffer: size, ratio of updates to steps, and selection."""
  replay_capacity: int = setting(
      0,
      'Number of unrolls in the replay buffer. The newest unrolls are kept, in '
      'memory but not in checkpoints, and learned from again. The IMPALA paper '
      'keeps 10,000 unrolls. appo: the ring of IMPACT, in place of --passes; '
      'needs --target_policy_period. 0 for no replay.', NOT_NEGATIVE,
      algorithms=VTRACE, divided='exactly')
  replay_fraction: float = setting(
      .5,
      'Share of replayed unrolls in a batch, with --replay_capacity. Frames, '
      'returns and policy lag are counted for fresh unrolls only.', FRACTION,
      algorithms=VTRACE, needs=_REPLAY, unless='unrolls_per_collect')
  unrolls_per_collect: int = setting(
      0,
      'impala with --replay_capacity: collect this many unrolls, then make '
      '--updates_per_collect updates from replayed unrolls only, as in '
      'DI-engine. 0 for fresh unrolls in every batch. appo: unrolls that are '
      'learned from in --passes passes, without --replay_capacity. 0 for one '
      'unroll of each environment.',
      NOT_NEGATIVE, algorithms=VTRACE,
      needs=Needs('replay_capacity', algorithms=('impala',)),
      divided='exactly')
  updates_per_collect: int = setting(
      4,
      'Updates after each collection of --unrolls_per_collect unrolls. No '
      'update is made while the replay has fewer unrolls than a batch.',
      POSITIVE, algorithms=('impala',), needs=_COLLECTIONS)
  max_use: int = setting(
      0,
      'With --unrolls_per_collect: remove an unroll from the replay after this '
      'many draws. 0 for no limit.', NOT_NEGATIVE, algorithms=('impala',),
      needs=_COLLECTIONS)
  replay_steps: int = setting(
      1_000_000,
      'Number of agent steps in the replay buffer, of all environments '
      'together. The newest steps are kept.', POSITIVE, algorithms=OFF_POLICY,
      divided='roughly')
  save_replay: str = setting(
      'auto',
      'Save the replay with checkpoints, in the directory replay of --logdir. '
      'auto: if the full replay has at most 2 GB. Without a saved replay, a '
      'resumed run first collects --min_replay_steps; an old saved replay is '
      'deleted. The replay is always saved with --deterministic.',
      choices=('auto', 'yes', 'no'), algorithms=OFF_POLICY)
  min_replay_steps: int | None = setting(
      By({'ddqn on Atari': 20_000, 'others': 1_000}),
      'Agent steps, of all environments together, before the first update. The '
      'actions of these steps are random. With --use_lstm, at least a sequence '
      'of each environment.', POSITIVE, algorithms=OFF_POLICY,
      divided='roughly')
  updates_per_step: float | None = setting(
      By({'off-policy on Atari with LSTM': .0125, 'ddqn with LSTM': .0625,
          'off-policy with LSTM': .125, 'Atari': .25, 'others': 1.}),
      'Updates per agent step (of any environment), such as 0.25 for one '
      'update every four steps. The ratio is exact: actors and learner wait '
      'for each other.', POSITIVE, algorithms=OFF_POLICY)
  n_step: int = setting(
      1,
      'n-step returns: number of rewards that are summed before the value of '
      'the next observation is added.', POSITIVE, COUNT, algorithms=OFF_POLICY)
  reward_scale: float = setting(
      1.,
      'Number by which rewards are multiplied, after --reward_clipping, before '
      'they are learned. Reported returns are not multiplied.', POSITIVE,
      algorithms=OFF_POLICY)
  selector: str = setting(
      'uniform',
      'Selection of steps from the replay (with impala and --replay_capacity: '
      'of unrolls; with --use_lstm: of sequences). uniform: equal '
      'probabilities. prioritised: large errors more often, see '
      '--priority_exponent. recent: newer steps more often, see --recent_eta. '
      'recent_prioritised: both.',
      choices=('uniform', 'prioritised', 'recent', 'recent_prioritised'),
      algorithms=('impala', *OFF_POLICY))
  priority_exponent: float = setting(
      .6,
      'Prioritised selectors: alpha: draws have probabilities in proportion to '
      '(error + --priority_epsilon)^alpha. 0 for equal probabilities.',
      NOT_NEGATIVE, needs=_PRIORITISED)
  priority_epsilon: float = setting(
      .01,
      'Prioritised selectors: number that is added to each error, so that '
      'steps with small errors are drawn.', POSITIVE, needs=_PRIORITISED)
  importance_exponent: float = setting(
      .4,
      'Prioritised selectors: beta of the importance weights: (probability of '
      'the draw)^-beta, divided by the largest possible weight of all '
      'learners. Fresh unrolls have weight 1. 0 for no importance weights.',
      FRACTION, needs=_PRIORITISED)
  importance_exponent_end: float = setting(
      1.,
      'Prioritised selectors: value that --importance_exponent reaches, '
      'linearly, at --total_environment_frames.', FRACTION, needs=_PRIORITISED)
  recent_eta: float = setting(
      .996,
      'Recent selectors: in rounds of 50 batches, batch k is drawn from the '
      'newest eta^(20 k) of all steps. 1 for all steps in each batch.',
      POSITIVE, FRACTION, needs=_RECENT)
  recent_min_steps: int = setting(
      By({'impala': 250, 'others': 5_000}),
      'Recent selectors: smallest number of steps (with impala, of unrolls) '
      'that a batch is drawn from. Age has no effect while the replay '
      'holds no more.', POSITIVE, needs=_RECENT, divided='roughly')
  hindsight: str = setting(
      'none',
      'Hindsight experience replay, for levels with goals: most drawn steps '
      'get a goal that was achieved in the same episode. future: achieved '
      'after the step. final: at the end of the episode. episode: at any time '
      'of the episode.', choices=('none', *_GOALS),
      algorithms=OFF_POLICY)
  hindsight_goals: int = setting(
      4,
      'With --hindsight: number of drawn steps with a replaced goal per drawn '
      'step with the original goal.', POSITIVE, algorithms=OFF_POLICY,
      needs=Needs('hindsight', _GOALS))

  @property
  def is_prioritised(self) -> bool:
    """Whether probabilities of draws depend on errors."""
    return self.selector in _PRIORITISED.values

  @property
  def is_recent(self) -> bool:
    """Whether probabilities of draws depend on age."""
    return self.selector in _RECENT.values
