"""Data sets on disk, how they are prepared, scenarios over their classes, and what of them enters a container."""

from suite.data.dataset import DataSet, Progress
from suite.data.delivery import FIXED_TIME, ITEMS_FILE, write_company, write_items, write_task
from suite.data.manifest import ClassFiles, Manifest, Origin, Split
from suite.data.paths import ARCHIVES_VARIABLE, DATA_VARIABLE, archives_root, data_root
from suite.data.registry import DataSetInfo
from suite.data.scenario import GENERATORS, Generator, Scenario, Task, build_scenario, scenario_seed, seen_classes
from suite.data.writer import ClassPlan, Plan, Writer, write_data_set

__all__ = [
    "ARCHIVES_VARIABLE",
    "DATA_VARIABLE",
    "FIXED_TIME",
    "GENERATORS",
    "ITEMS_FILE",
    "ClassFiles",
    "ClassPlan",
    "DataSet",
    "DataSetInfo",
    "Generator",
    "Manifest",
    "Origin",
    "Plan",
    "Progress",
    "Scenario",
    "Split",
    "Task",
    "Writer",
    "archives_root",
    "build_scenario",
    "data_root",
    "scenario_seed",
    "seen_classes",
    "write_company",
    "write_data_set",
    "write_items",
    "write_task",
]
