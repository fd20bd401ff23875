# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Registers `SlowResets-v0`, LunarLander-v3 whose resets take two seconds."""

import time

import gymnasium

_RESET_S = 2.


class _SlowResets(gymnasium.Wrapper):

  def reset(self, **kwargs):
    time.sleep(_RESET_S)
    return self.env.reset(**kwargs)


gymnasium.register(
    'SlowResets-v0', lambda **kwargs: _SlowResets(
        gymnasium.make('LunarLander-v3', **kwargs)))
