"""What holds for every test: a forked child destroys nothing that belongs to the process of the tests."""

import gc
import os

# Engines that earlier tests left to the collector have threads, which a fork does not copy: collecting such an engine
# in a child ends the child, and whoever waits for it waits for ever.
os.register_at_fork(after_in_child=gc.freeze)
