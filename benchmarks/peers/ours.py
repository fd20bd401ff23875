# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Runs experiment.py for benchmarks/peers.py, counted as the peers are."""

import json
import os
import sys

from absl import app
import pong

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, _ROOT)
# experiment.py sets this itself, but TensorFlow is imported here before.
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')
# pylint: disable=wrong-import-position
import experiment
from scalable_agent import learner
from scalable_agent.environments import atari


def _counted(step):
  def counting_step(self, actions):
    pong.count_steps(len(actions))
    return step(self, actions)
  return counting_step


class _NotingLearner(learner.Learner):

  def step(self, batch):
    num_unrolls = batch.agent_outputs.action.shape[1]
    num_steps = batch.agent_outputs.action.shape[0] - 1
    scalars = super().step(batch)
    if int(self.num_updates) == 1:
      pong.note_parameters(self.agent.trainable_variables)
    pong.note_update(num_unrolls * num_steps)
    return scalars


def main():
  settings = json.loads(sys.argv[1])
  os.chdir(_ROOT)  # Flag files are named from there.
  atari.AtariVector.step = _counted(atari.AtariVector.step)
  learner.Learner = _NotingLearner
  app.run(experiment.main, [
      'experiment.py', '--flagfile=configs/pong_two_cores.flags',
      f'--agent={settings["network"]}',
      f'--batch_size={settings["batch_size"]}',
      f'--unroll_length={settings["unroll_length"]}',
      '--logdir=' + os.path.join(os.environ['PEERS_RUN'], 'logdir'),
      '--save_checkpoint_secs=100000', *settings['flags']])


if __name__ == '__main__':
  main()
