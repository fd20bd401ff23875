# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Whether acting or learning limits the speed, and the flags that help."""

from collections.abc import Mapping

from scalable_agent.settings import config as config_lib


class Bottleneck:
  """Finds whether the actors or the learner wait."""

  def __init__(self, config: config_lib.Config, has_processes: bool) -> None:
    """Takes the settings of the run, resolved, whose flags advice can name.

    More groups help environments with a process each, which wait for each
    other. C++ threads share the cores already.
    """
    self._before: dict[tuple[str, str], tuple[float, float]] = {}
    self._text = ''
    num_groups = config.num_actor_groups
    self._environments = (
        f'--num_actor_groups={config.num_actors} lets each environment wait '
        'only for itself.' if has_processes and num_groups < config.num_actors
        else 'more environments (--num_actors) give more frames, if cores are '
        'free.')
    self._policy = (
        'fewer groups (--num_actor_groups) with more environments each make '
        'fewer, larger policy steps.' if num_groups > 1 else
        'more environments (--num_actors) make larger policy steps.')
    compiled = '' if config.xla == 'all' else (
        '--xla=all (small networks, or a GPU) or with ')
    changed = ('a smaller --updates_per_step' if config.is_off_policy else
               'fewer --passes or a larger --batch_size' if (
                   config.algorithm == 'appo') else 'a larger --batch_size')
    self._learning = f'{compiled}{changed}, which changes the results.'

  def __call__(self, learner: Mapping[str, float],
               actors: Mapping[str, float]) -> str:
    """Returns a line, or '' without a clear answer and if nothing has changed.

    `learner` are the seconds of the learner in each stage so far, with a stage
    `wait`, and `actors` those of all actors together.
    """
    learner_share = self._share('learner', learner)
    actor_share = self._share('actors', actors)
    environments, policy = (self._share('actors', actors, stage)
                            for stage in ('environment', 'policy'))
    text, share, advice = '', 0., ''
    if learner_share > 0.5:
      text, share = 'Acting is the bottleneck: the learner waits', learner_share
      advice = (f'Acting mostly waits for environments: {self._environments}'
                if environments > policy else
                f'Acting mostly computes actions: {self._policy}')
    elif actor_share > 0.5:
      text, share = 'Learning is the bottleneck: the actors wait', actor_share
      advice = f'Learn faster with {self._learning}'
    is_new, self._text = text != self._text, text
    return (f'{text} {100 * share:.0f} % of the time. {advice}'
            if text and is_new else '')

  def _share(self, role: str, seconds: Mapping[str, float],
             stage: str = 'wait') -> float:
    """Returns the share of a stage of the time since the last call."""
    now = seconds.get(stage, 0.), sum(seconds.values())
    before = self._before.get((role, stage), (0., 0.))
    self._before[role, stage] = now
    spent, total = now[0] - before[0], now[1] - before[1]
    # Seconds of a process that was restarted begin at 0 again.
    return spent / total if 0 <= spent <= total and total else 0.
