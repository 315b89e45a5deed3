"""Everything that decides what a search does, apart from pool, learners and seed."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Strategy = Literal["search", "random", "uniform", "unclustered", "similar"]
Method = Literal["exhaustive", "mcts"]
Level = Literal["hard", "medium", "easy"]

TEMPERATURES: dict[Level, float] = {"hard": 0.0, "medium": 0.05, "easy": 1.0}
"""tau of eq. 7 by level. The paper names the levels without values; rewards are fractions, and 0.05 is of the order of
their differences between candidates, while 1 makes candidates almost equally likely."""


class SearchSettings(BaseModel):
    """Settings of one sequence. Defaults follow CLDyB section 5 and appendix B.3 where it gives a number.

    Ablations of section 5.2: `random` (a), `uniform` (b), `unclustered` (c), `similar` (d).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    strategy: Strategy = "search"
    tasks: int = Field(default=10, ge=1, description="N, tasks in the sequence")
    classes_per_task: int = Field(default=20, ge=1, description="K, classes in a task")
    n_greedy: int = Field(default=100, ge=1, description="tasks drawn by algorithm 1 at each step")
    n_clusters: int = Field(default=5, ge=1, description="clusters of algorithm 2")
    n_candidates: int = Field(default=10, ge=1, description="J, candidates that the search chooses from")
    neighbours: int = Field(default=20, ge=1, description="k of the k-NN classifiers of algorithm 2")
    epsilon: float = Field(default=0.1, gt=0, description="e of p = (n_c + e) / (k + K e)")
    images_per_class: int = Field(default=20, ge=1, description="most images of a class and part that are embedded")
    look_ahead: int = Field(default=1, ge=0, le=2, description="l of eq. 6")
    discount: float = Field(default=1.0, gt=0, le=1, description="alpha of eq. 5")
    temperature: float = Field(default=0.0, ge=0, description="tau of eq. 7; 0 takes the best candidate")
    method: Method = "exhaustive"
    expand: int | None = Field(
        default=3, ge=1, description="exhaustive: candidates, best first, whose look-ahead is evaluated"
    )
    children: int | None = Field(
        default=3,
        ge=1,
        description="exhaustive: most next tasks of an inner node; where candidates are fewer, more are drawn",
    )
    carry: int = Field(default=3, ge=0, description="most scored children of the chosen task among the next candidates")
    learn_calls: int | None = Field(default=None, ge=1, description="mcts: learn calls of the whole group per step")
    exploration: float = Field(default=0.5, ge=0, description="mcts: c of UCT, on values scaled to [0, 1]")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.carry >= self.n_candidates:
            raise ValueError("carry must be below n_candidates: some candidates must come from the present states")
        if self.method == "mcts" and self.learn_calls is None:
            raise ValueError("mcts needs learn_calls, its budget")
        if self.method == "exhaustive" and self.learn_calls is not None:
            raise ValueError("learn_calls is a budget of mcts; an exhaustive search is bounded by expand and children")
        skips = self.method == "exhaustive" and self.look_ahead > 0 and self.expand is not None
        if self.temperature > 0 and skips:
            raise ValueError("a temperature needs the value of every candidate: set expand to null or look_ahead to 0")
        return self
