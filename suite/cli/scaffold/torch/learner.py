"""A learner to start from: fine-tuning of a small convolutional network. Replace what it learns and how."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from suite.sdk import Choice, LogUniform, Space, Task
from suite.sdk.torch import TorchLearner


class Mine(TorchLearner):
    """Trains on the new task alone, hence forgets."""

    name = "__TITLE__"
    description = "Fine-tuning of a small convolutional network."
    space = Space(lr=LogUniform(0.003, 0.1), epochs=Choice([2, 4]), batch_size=Choice([32, 64]))

    def grow(self, seen: int) -> None:
        """Give the head one output per class; old outputs keep their weights."""
        head = nn.Linear(64, seen).to(self.device)
        if self.seen:
            with torch.no_grad():
                head.weight[: self.seen] = self.network[-1].weight
                head.bias[: self.seen] = self.network[-1].bias
            self.network[-1] = head
            return
        self.network = nn.Sequential(
            nn.Conv2d(self.context.setup.image.channels, 32, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, 2, 1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            head,
        ).to(self.device)

    def learn(self, task: Task) -> None:
        """Plain SGD on the task's images."""
        self.enlarge(task.classes)
        images, labels = self._pixels(task.images), torch.from_numpy(task.labels).to(self.device)
        h = self.context.hyperparameters
        optimiser = torch.optim.SGD(self.network.parameters(), lr=h["lr"], momentum=0.9)
        for epoch in range(h["epochs"]):
            for batch in torch.randperm(len(labels)).split(h["batch_size"]):
                loss = nn.functional.cross_entropy(self.network(images[batch]), labels[batch])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
            self.progress(epoch + 1, h["epochs"], loss=loss.item())

    @torch.no_grad()
    def predict(self, images: np.ndarray) -> np.ndarray:
        """The network's outputs, in batches."""
        outputs = [self.network(self._pixels(images[i : i + 256])).cpu() for i in range(0, len(images), 256)]
        return torch.cat(outputs).numpy()

    def _pixels(self, images: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.array(images)).to(self.device).permute(0, 3, 1, 2).float() / 255
