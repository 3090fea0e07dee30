"""Recipes: the full configuration of a training run, its presets, its differences and its sweep designs."""

from .designs import (
    CONTROL,
    MAX_RUNS,
    Arm,
    Grid,
    LeaveOneOut,
    OneFactor,
    PlannedRun,
    expand,
    further_arm,
    load_design,
    plan_hash,
    planned_runs,
)
from .errors import RecipeError
from .paths import check_path, diff, get_value, leaf_paths, load_recipe, other_course, other_weights, with_changes
from .presets import PRESETS, SCALERL, SCALERL_REVERSIONS, preset
from .schema import SECONDS_PER_UNIT, Name, Recipe

__all__ = [
    "CONTROL",
    "MAX_RUNS",
    "PRESETS",
    "SCALERL",
    "SCALERL_REVERSIONS",
    "SECONDS_PER_UNIT",
    "Arm",
    "Grid",
    "LeaveOneOut",
    "Name",
    "OneFactor",
    "PlannedRun",
    "Recipe",
    "RecipeError",
    "check_path",
    "diff",
    "expand",
    "further_arm",
    "get_value",
    "leaf_paths",
    "load_design",
    "load_recipe",
    "other_course",
    "other_weights",
    "plan_hash",
    "planned_runs",
    "preset",
    "with_changes",
]
