# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Measures acting: environments alone, policies alone, actors with both.

  python benchmarks/actors.py [--num_envs=32] [--json=actors.json]

The level is an Atari game with the paper's protocol. Rates are agent steps/s:

*   environments: random actions. ALE's vector environment as
    `environments.make_vec` builds it, with several numbers of threads;
    gymnasium's AsyncVectorEnv with its AtariPreprocessing, one process per
    environment; EnvPool, for whole vectors and (async) for the half that is
    ready first.
*   policies: `Policy.step` on a batch, always of the same observations.
*   actors: `Actor.make_unroll`; the unrolls are dropped. The environments are
    divided among groups, with one thread each.

Operations of TensorFlow have its default number of threads; where a training
keeps all cores busy, they have one.

The measurements take turns, and a rate is the median of its turns. EnvPool and
AsyncVectorEnv run in a virtual environment of their own.
"""

import argparse
from concurrent import futures
import contextlib
import itertools
import json
import logging
import os
import pathlib
import shlex
import statistics
import subprocess
import sys

import numpy as np
import speed
import venvs

# TensorFlow and scalable_agent are imported where they are used, because this
# module also runs in EnvPool's virtual environment, see `run_peer`.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')  # As experiment.py does.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# TensorFlow warns that functions are traced again: there is one per policy.
logging.getLogger('tensorflow').setLevel(logging.ERROR)
_CORES = len(os.sched_getaffinity(0))
_PEERS = ('AsyncVectorEnv', 'EnvPool', 'EnvPool, async')


def _async_vector_env(level, num_envs):
  import ale_py
  import gymnasium

  def make():
    gymnasium.register_envs(ale_py)
    env = gymnasium.make(level, frameskip=1, repeat_action_probability=0.0)
    env = gymnasium.wrappers.AtariPreprocessing(env, noop_max=30, frame_skip=4)
    return gymnasium.wrappers.FrameStackObservation(env, 4)

  env = gymnasium.vector.AsyncVectorEnv(
      [make] * num_envs, shared_memory=True, copy=False)
  env.reset(seed=0)
  return env


def _envpool(level, num_envs, batch_size):
  import envpool
  return envpool.make_gymnasium(
      level.removeprefix('ALE/'), num_envs=num_envs, batch_size=batch_size,
      num_threads=_CORES, stack_num=4, frame_skip=4, noop_max=30,
      use_fire_reset=False, seed=0)


def run_peer(peer, level, num_envs):
  """Answers every line of stdin, seconds, with agent steps/s."""
  # Other output must not get between the answers.
  answers = os.fdopen(os.dup(1), 'w')
  os.dup2(2, 1)
  batch_size = max(1, num_envs // 2) if peer == 'EnvPool, async' else num_envs
  if peer == 'AsyncVectorEnv':
    env = _async_vector_env(level, num_envs)
    num_actions = int(env.single_action_space.n)
  else:
    env = _envpool(level, num_envs, batch_size)
    num_actions = int(env.action_space.n)
  rng = np.random.RandomState(0)
  random_actions = lambda: rng.randint(num_actions, size=batch_size)
  if peer == 'EnvPool, async':
    env.async_reset()

    def step():
      env_ids = env.recv()[-1]['env_id']
      env.send(random_actions(), env_ids)
  else:
    env.reset()
    step = lambda: env.step(random_actions())
  for line in sys.stdin:
    print(batch_size * speed.per_s(step, float(line)), file=answers, flush=True)
  env.close()


def _peer_turn(stack, python, peer, args):
  """Starts a process of the peer; returns a function that measures a turn."""
  process = stack.enter_context(subprocess.Popen(
      [python, __file__, f'--peer={peer}', f'--level_name={args.level_name}',
       f'--num_envs={args.num_envs}'],
      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))

  def turn(seconds):
    print(seconds, file=process.stdin, flush=True)
    return float(process.stdout.readline())

  return turn


def _make_env(stack, args, num_envs, num_threads=0):
  from scalable_agent import environments
  return stack.enter_context(environments.make_vec(
      [args.level_name] * num_envs, range(num_envs), num_threads=num_threads))


def _environment_turns(stack, args):
  """Returns `{(what, number of environments): turn}`."""
  turns = {}
  for num_threads in args.threads:
    env = _make_env(stack, args, args.num_envs, num_threads)
    env.initial()
    rng = np.random.RandomState(0)
    step = lambda env=env, rng=rng: env.step(
        rng.randint(env.spec.action.num_values[0], size=env.num_envs))
    turns[f'ALE vector, {num_threads or "default"} threads', args.num_envs] = (
        lambda seconds, s=step: args.num_envs * speed.per_s(s, seconds))
  if args.peers:
    python = venvs.make(pathlib.Path(args.venv), shlex.split(args.pip_args))
    for peer in args.peers:
      turns[peer, args.num_envs] = _peer_turn(stack, python, peer, args)
  return turns


def _make_policy(env, network, mode):
  from scalable_agent.acting import policies
  from scalable_agent.networks import factory
  recurrent = network == 'deep-lstm'
  agent = factory.make_agent(
      network.removesuffix('-lstm'), env.spec.observation, env.spec.action,
      use_lstm=recurrent, use_last_action_reward=recurrent, seed=1)
  return policies.AgentPolicy(agent, jit_compile=mode == 'xla')


def _policy_turns(stack, args):
  """Returns `{(what, batch size): turn}`."""
  turns = {}
  for batch_size in args.batch_sizes:
    env = _make_env(stack, args, batch_size)
    observed = env.initial()
    for network, mode in itertools.product(args.networks, args.modes):
      policy = _make_policy(env, network, mode)
      state = policy.initial_state(batch_size)
      last_action = np.zeros([batch_size], np.int32)
      step = lambda p=policy, arguments=(last_action, observed, state): (
          p.step(*arguments))
      turns[f'{network}, {mode}', batch_size] = (
          lambda seconds, n=batch_size, s=step: n * speed.per_s(s, seconds))
  return turns


def _actor_turns(stack, args):
  """Returns `{(what, number of environments): turn}`."""
  from scalable_agent.acting import actor
  from scalable_agent.experience import queues
  from scalable_agent.experience import structs
  from scalable_agent.experience import timing

  def turn(seconds, actors, steps):
    act = lambda a: steps * speed.per_s(
        lambda: a.make_unroll().release(), seconds)
    with futures.ThreadPoolExecutor(len(actors)) as executor:
      return sum(executor.map(act, actors))

  turns = {}
  for network, mode, num_groups in itertools.product(
      args.networks, args.modes, args.groups):
    actors, num_envs = [], args.num_envs // num_groups
    for _ in range(num_groups):
      env = _make_env(stack, args, num_envs)
      actors.append(actor.Actor(
          env, _make_policy(env, network, mode),
          published=lambda: structs.Weights(-1, []),  # None are newer.
          inbox=queues.BoundedQueue(1), unroll_length=args.unroll_length,
          timer=timing.StageTimer()))
    turns[f'{network}, {mode}, {num_groups} groups', args.num_envs] = (
        lambda seconds, a=actors, n=num_envs * args.unroll_length:
        turn(seconds, a, n))
  return turns


def measure(part, turns, rounds, seconds):
  """Prints and returns the rows of a part."""
  rates = {key: [] for key in turns}
  for turn in turns.values():
    turn(0.0)  # The first turn compiles.
  for i in range(rounds):
    # The order of every other round is reversed.
    for key in list(turns) if i % 2 else list(turns)[::-1]:
      rates[key].append(turns[key](seconds))
  rows = []
  for (what, size), values in rates.items():
    median = statistics.median(values)
    print(f'| {part} | {what} | {size} | {median:,.0f} | {min(values):,.0f} to '
          f'{max(values):,.0f} |', flush=True)
    rows.append({'part': part, 'what': what, 'size': size,
                 'agent_steps_per_s': median, 'turns': values})
  return rows


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parts = {'environments': _environment_turns, 'policies': _policy_turns,
           'actors': _actor_turns}
  parser.add_argument('--parts', nargs='+', default=list(parts), choices=parts)
  parser.add_argument('--level_name', default='ALE/Pong-v5')
  parser.add_argument('--num_envs', type=int, default=32)
  parser.add_argument('--threads', type=int, nargs='+', default=[0, 1, 2, 4],
                      help='of the ALE vector; 0: the default, as in training')
  parser.add_argument('--peers', nargs='*', default=_PEERS, choices=_PEERS)
  parser.add_argument('--networks', nargs='+', default=['shallow', 'deep'],
                      choices=['shallow', 'deep', 'deep-lstm'])
  parser.add_argument('--modes', nargs='+', default=['graph', 'xla'],
                      choices=['graph', 'xla'])
  parser.add_argument('--batch_sizes', type=int, nargs='+',
                      default=[8, 16, 32, 64])
  parser.add_argument('--groups', type=int, nargs='+', default=[1, 2, 4],
                      help='divisors of --num_envs')
  parser.add_argument('--unroll_length', type=int, default=20)
  parser.add_argument('--rounds', type=int, default=5)
  parser.add_argument('--seconds', type=float, default=3.0, help='of a turn')
  parser.add_argument('--venv', default=os.path.expanduser(
      '~/.cache/scalable_agent/benchmarks/envpool'),
      help='the virtual environment, made if missing')
  parser.add_argument(
      '--pip_args', default='envpool gymnasium ale-py opencv-python-headless',
      help='of pip install')
  parser.add_argument('--json', help='file to write the results to')
  parser.add_argument('--peer', choices=_PEERS, help=argparse.SUPPRESS)
  args = parser.parse_args()
  if args.peer:
    run_peer(args.peer, args.level_name, args.num_envs)
    return
  if any(args.num_envs % n for n in args.groups):
    parser.error('--groups must divide --num_envs.')

  print(f'{_CORES} cores, {args.level_name}\n\n| part | what | environments or '
        'batch | agent steps/s | turns |\n|---|---|---:|---:|---:|', flush=True)
  rows = []
  for part in args.parts:
    with contextlib.ExitStack() as stack:
      rows += measure(part, parts[part](stack, args), args.rounds, args.seconds)
  if args.json:
    with open(args.json, 'w', encoding='utf-8') as f:
      json.dump({'cpu_cores': _CORES, 'level_name': args.level_name,
                 'rows': rows}, f, indent=1)


if __name__ == '__main__':
  main()
