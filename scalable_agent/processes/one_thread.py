# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""First import of the fork server of `processes`: one thread for each library.

A library for numbers or images starts as many threads as the machine has cores,
in each process of an environment. The library reads these variables when it is
loaded. Only the server may import this module, because the import changes the
process.
"""

from scalable_agent.processes import variables

variables.set_threads()
