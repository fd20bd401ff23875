# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Whether acting or learning limits the speed, and the flags that help."""

from collections.abc import Mapping

from scalable_agent.settings import config as config_lib


class Bottleneck:
  """Finds whether the actors or the learner wait."""

  def __init__(self, config: config_lib.Config, has_processes: bool,
               has_bfloat16: bool) -> None:
    """Takes the settings of the run, resolved, whose flags advice can name.

    More groups help environments with a process each, which wait for each
    other. C++ threads share the cores already. `has_bfloat16`: whether the
    device has instructions for bfloat16.
    """
    self._before: dict[str, Mapping[str, float]] = {}
    self._text = ''
    num_groups = config.num_actor_groups
    self._environments = (
        f'--num_actor_groups={config.num_actors} lets each environment wait '
        'only for itself.' if has_processes and num_groups < config.num_actors
        else 'more environments (--num_actors) give more frames, if cores are '
        'free.')
    self._policy = (
        'fewer groups (--num_actor_groups) with more environments each make '
        'fewer, larger policy steps.'
        if num_groups > 1 and not config.dynamic_batching else
        'more environments (--num_actors) make larger policy steps.')
    flags = _flags_of_learning(config, has_bfloat16)
    self._learning = f'Learn faster with {flags}.'

  def __call__(self, learner: Mapping[str, float],
               actors: Mapping[str, float]) -> str:
    """Returns a line, or '' without a clear answer and if nothing has changed.

    `learner` are the seconds of the learner in each stage so far, with a stage
    `wait`, and `actors` those of all actors together.
    """
    of_learner = self._since_last_call('learner', learner)
    of_actors = self._since_last_call('actors', actors)
    learner_share, actor_share = map(_share_of_wait, (of_learner, of_actors))
    environments, policy = (
        of_actors.get(stage, 0.) for stage in ('environment', 'policy'))
    text, share, advice = '', 0., ''
    if learner_share > 0.5:
      text, share = 'Acting is the bottleneck: the learner waits', learner_share
      if environments > policy:
        advice = f' Acting mostly waits for environments: {self._environments}'
      elif policy:
        advice = f' Acting mostly computes actions: {self._policy}'
    elif actor_share > 0.5:
      text, share = 'Learning is the bottleneck: the actors wait', actor_share
      advice = f' {self._learning}'
    is_new, self._text = text != self._text, text
    return (f'{text} {100 * share:.0f} % of the time.{advice}'
            if text and is_new else '')

  def _since_last_call(self, role: str,
                       seconds: Mapping[str, float]) -> dict[str, float]:
    """Returns the seconds in each stage; none after a restart of a process."""
    before, self._before[role] = self._before.get(role, {}), dict(seconds)
    spent = {stage: now - before.get(stage, 0.)
             for stage, now in seconds.items()}
    # Seconds of a process that was restarted begin at 0 again.
    return spent if min(spent.values(), default=0.) >= 0 else {}


def _share_of_wait(seconds: Mapping[str, float]) -> float:
  total = sum(seconds.values())
  return seconds.get('wait', 0.) / total if total else 0.


def _flags_of_learning(config: config_lib.Config, has_bfloat16: bool) -> str:
  """Returns the flags that make learning faster, as text."""
  changes = []
  # Small layers of an mlp were not faster.
  if (has_bfloat16 and config.agent != 'mlp'
      and config.compute_dtype == 'float32'):
    changes = ['--compute_dtype=bfloat16']
  if config.is_off_policy:
    changes += ['a smaller --updates_per_step']
  else:
    if (config.passes or 1) > 1 and not config.replay_capacity:
      changes += ['fewer --passes']
    if not config.unrolls_per_collect or (
        config.batch_size < config.unrolls_per_collect):
      changes += ['a larger --batch_size']
  texts = ([] if config.xla == 'all' else
           ['--xla=all (small networks, or a GPU)'])
  if changes:
    texts += [f'{" or ".join(changes)}, which changes the results']
  return ' or with '.join(texts) or 'more cores'
