"""The worker: short tasks, each in a process of its own."""

import os

# One process is one core's worth, and there are several of them. Threads of the linear algebra would wait for one
# another by spinning, and take the cores that the other processes need: its matrices are small. Read when numpy loads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
