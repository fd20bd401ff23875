# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Actors in threads of this process."""

from collections.abc import Callable, Sequence
from concurrent import futures
import functools
import threading
import time

import numpy as np
from scalable_agent import algorithms
from scalable_agent.acting import actor
from scalable_agent.acting import interface
from scalable_agent.acting import policies
from scalable_agent.environments import base
from scalable_agent.environments import restarts as restarts_lib
from scalable_agent.experience import queues
from scalable_agent.experience import structs
from scalable_agent.experience import timing
from scalable_agent.experience import unrolls
from scalable_agent.networks import layers
from scalable_agent.processes import threads
from scalable_agent.settings import config as config_lib


class Local:
  """Actors in threads of this process; implements `interface.Acting`."""

  def __init__(self, envs: Sequence[base.FlowEnvironment],
               make_policies: Callable[[], Sequence[policies.Policy]],
               numbers: range, *,
               unroll_length: int, num_buffers: int,
               bootstrap_truncated: bool,
               restarts: restarts_lib.Restarts | None = None,
               ladder: np.ndarray | None = None):
    """Makes the object; `start` starts the threads.

    Args:
      envs: the environments of each actor.
      make_policies: makes the policy of each actor; called by `start`. Several
        actors can share a `policies.SharedPolicy`. `stop` closes all policies.
      numbers: the numbers of the environments in the run.
      unroll_length: agent steps.
      num_buffers: number of unrolls that an actor uses in turn.
      bootstrap_truncated: see `actor.Actor`.
      restarts: counts restarts of `envs`, if lost environments are restarted.
      ladder: see `actor.Actor`.
    """
    self._restarts = restarts
    self._envs = list(envs)
    self.spec = envs[0].spec
    self.num_groups = len(envs)
    self.environments = numbers
    self.num_environments = len(numbers)
    self._make_policies = make_policies
    self._policies: list[policies.Policy] = []
    self._make_actor = functools.partial(
        actor.Actor, unroll_length=unroll_length, num_buffers=num_buffers,
        bootstrap_truncated=bootstrap_truncated, ladder=ladder)
    self._timers = [timing.StageTimer() for _ in self._envs]
    self._actors: list[actor.Actor] = []
    self._threads: list[threading.Thread] = []

  def start(self, published: Callable[[], structs.Weights],
            inbox: queues.BoundedQueue[unrolls.Delivery]) -> None:
    self._policies = list(self._make_policies())
    self._actors = [
        self._make_actor(env, policy, published, inbox, timer=timer)
        for env, policy, timer in zip(
            self._envs, self._policies, self._timers, strict=True)]

    def act(one: actor.Actor) -> None:
      with inbox.ending_thread():
        one.run()

    self._threads = [
        threads.LibraryThread(functools.partial(act, one), f'actor-{index}')
        for index, one in enumerate(self._actors)]
    for thread in self._threads:
      thread.start()

  def stop(self, timeout_s: float) -> None:
    deadline_s = time.monotonic() + timeout_s
    left_s = lambda: max(deadline_s - time.monotonic(), 0)
    for one in self._actors:
      one.close()
    for policy in set(self._policies):
      policy.close(left_s())
    for thread in self._threads:
      if thread.ident is not None:  # The thread was started.
        thread.join(left_s())

  def close(self) -> None:
    # Close in parallel, since each hung environment blocks until its timeout.
    with futures.ThreadPoolExecutor(len(self._envs)) as executor:
      for closed in [executor.submit(env.close) for env in self._envs]:
        closed.result()

  def seconds(self) -> dict[str, float]:
    return timing.totals(dict(timer.seconds) for timer in self._timers)

  def num_steps(self) -> int:
    return sum(env.num_steps for env in self._envs)

  def counts(self) -> dict[str, int]:
    return {'lost_groups': self._restarts.count} if self._restarts else {}


def make_policies(config: config_lib.Config, spec: structs.EnvironmentSpec,
                  num_groups: int, part: int,
                  share: interface.Share) -> list[policies.Policy]:
  """Returns the policy of each group: separate policies, or a shared policy.

  Args:
    num_groups: number of groups of environments.
    part: a number that differs between the parts of a run.
    share: the share of this process, for the seeds.
  """
  first = share.worker * config.num_actor_groups
  make_one = lambda index, jit_compile: policies.AgentPolicy(
      algorithms.make_agent(config, spec, config.derive_seed(
          'actor', first + index, part, share.incarnation)),
      jit_compile=jit_compile, state_on_host=bool(config.dynamic_batching))
  if config.dynamic_batching:
    return [policies.SharedPolicy(make_one(0, False))] * num_groups
  return [make_one(index, config.xla != 'none') for index in range(num_groups)]


def make_around(envs: Sequence[base.FlowEnvironment],
                config: config_lib.Config, part: int,
                share: interface.Share,
                restarts: restarts_lib.Restarts | None = None) -> Local:
  """Makes actors in threads of this process, one for each group of `envs`.

  Args:
    envs: the environments of `share`.
    part: a number that differs between the parts of a run.
    share: the numbers of the environments.
    restarts: counts restarts of `envs`.
  """
  spec, num_groups = envs[0].spec, len(envs)

  def make() -> list[policies.Policy]:
    resolved = config.resolved(
        spec.observation, on_cpu=layers.on_cpu(), num_groups=num_groups,
        num_environments=len(share.environments))
    return make_policies(resolved, spec, num_groups, part, share)

  return Local(
      envs, make, share.environments, unroll_length=config.unroll_length,
      num_buffers=config.num_unroll_buffers,
      bootstrap_truncated=bool(config.bootstrap_truncated), restarts=restarts,
      ladder=make_ladder(config.num_actors) if config.exploration_ladder
      else None)


def make_ladder(num_environments: int) -> np.ndarray:
  """Returns Ape-X's probabilities of random actions, float32 `[N]`.

  A run has `N` environments, counted from 0 on.
  """
  share = np.arange(num_environments) / max(num_environments - 1, 1)
  return (.4 ** (1 + 7 * share)).astype(np.float32)
