# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""The object of a `PyProcess`. Processes import no TensorFlow here."""

from collections.abc import Mapping

import tree


class Served:
  """The object, in the process; an error of a method closes the object."""

  def __init__(self, type_: type, kwargs: Mapping[str, object]):
    self._object = type_(**kwargs)

  def call(self, name: str, args: tuple) -> list | None:
    """Returns the flat result of a method."""
    try:
      result = getattr(self._object, name)(*args)
      return None if result is None else tree.flatten(result)
    except Exception:
      try:
        self.close()
      except Exception:
        pass  # The first error is the one to show.
      raise

  def close(self) -> None:
    """Closes the object, if the object has `close`."""
    getattr(self._object, 'close', lambda: None)()
