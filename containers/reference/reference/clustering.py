"""k-means, for proxies that start at the modes of a class."""

from __future__ import annotations

import torch
from torch import Tensor


def kmeans(points: Tensor, count: int, iterations: int = 50) -> Tensor:
    """`count` centres [count, D] of `points` [N, D]: k-means++ seeding, then Lloyd's iterations until nothing moves.

    With fewer than `count` points the centres repeat them. Random numbers come from torch's global CPU generator.
    """
    if len(points) <= count:
        return points[torch.arange(count, device=points.device) % len(points)].clone()
    centres = _plus_plus(points, count)
    nearest = torch.cdist(points, centres).argmin(1)
    for _ in range(iterations):
        members = torch.nn.functional.one_hot(nearest, count).to(points)
        sizes = members.sum(0).unsqueeze(1)
        centres = torch.where(sizes > 0, members.T @ points / sizes.clamp(min=1), centres)
        before, nearest = nearest, torch.cdist(points, centres).argmin(1)
        if torch.equal(before, nearest):
            break
    return centres


def _plus_plus(points: Tensor, count: int) -> Tensor:
    chosen = [int(torch.randint(len(points), (1,)))]
    distances = (points - points[chosen[0]]).square().sum(1)
    while len(chosen) < count:
        weights = distances.cpu() if float(distances.sum()) > 0 else torch.ones(len(points))
        chosen.append(int(torch.multinomial(weights, 1)))
        distances = torch.minimum(distances, (points - points[chosen[-1]]).square().sum(1))
    return points[chosen].clone()
