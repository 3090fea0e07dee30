"""Which arm of a sweep moved the ceiling, which only the efficiency, and what would decide the rest.

compare({"base": [curve, curve], "no-fp32": curve}, control="base").verdicts
"""

from .common_ceiling import PaperColumn, refit_at_ceiling
from .compare import compare
from .comparison import ArmVerdict, Comparison, Multiplier
from .pool import PooledSeeds, pool_seeds
from .seeds import SeedSpread

__all__ = [
    "ArmVerdict",
    "Comparison",
    "Multiplier",
    "PaperColumn",
    "PooledSeeds",
    "SeedSpread",
    "compare",
    "pool_seeds",
    "refit_at_ceiling",
]
