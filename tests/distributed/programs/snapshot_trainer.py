"""Training with torchrun that saves snapshots and continues from the last one after a restart.

    torchrun --nproc-per-node N snapshot_trainer.py EPOCHS SAVE_EVERY FOLDER [--batch-size 32] [--die-in-epoch E]

A rank dies at the first start only, when the environment variable TORCHELASTIC_RESTART_COUNT is 0.
"""

import argparse
import os
import signal

import torch
import torch.nn.functional as F
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class ToyDataset(Dataset):
    def __init__(self, size):
        generator = torch.Generator().manual_seed(5)
        self.size = size
        self.data = [(torch.rand(20, generator=generator), torch.rand(1, generator=generator)) for _ in range(size)]

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return self.data[index]


class Trainer:
    def __init__(self, model, train_data, optimizer, save_every, snapshot_path, die_in_epoch):
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.global_rank = int(os.environ["RANK"])
        self.model, self.train_data, self.optimizer = model, train_data, optimizer
        self.save_every, self.snapshot_path, self.die_in_epoch = save_every, snapshot_path, die_in_epoch
        self.epochs_run = 0
        if os.path.exists(snapshot_path):
            print("Loading snapshot", flush=True)
            self._load_snapshot(snapshot_path)
        self.model = DDP(self.model)

    def _load_snapshot(self, path):
        snapshot = torch.load(path, map_location="cpu")
        self.model.load_state_dict(snapshot["MODEL_STATE"])
        self.optimizer.load_state_dict(snapshot["OPTIMIZER_STATE"])
        self.epochs_run = snapshot["EPOCHS_RUN"]
        print(f"Resuming training from snapshot at Epoch {self.epochs_run}", flush=True)

    def _save_snapshot(self, epoch):
        snapshot = {
            "MODEL_STATE": self.model.module.state_dict(),
            "OPTIMIZER_STATE": self.optimizer.state_dict(),
            "EPOCHS_RUN": epoch + 1,
        }
        torch.save(snapshot, self.snapshot_path + ".new")
        os.replace(self.snapshot_path + ".new", self.snapshot_path)
        print(f"Epoch {epoch} | Training snapshot saved", flush=True)

    def _run_batch(self, source, targets):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(source), targets)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def _run_epoch(self, epoch):
        batch_size = len(next(iter(self.train_data))[0])
        print(
            f"[RANK{self.global_rank}] Epoch {epoch} | Batchsize: {batch_size} | Steps: {len(self.train_data)}",
            flush=True,
        )
        self.train_data.sampler.set_epoch(epoch)
        losses = []
        for step, (source, targets) in enumerate(self.train_data):
            first = os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0"
            if epoch == self.die_in_epoch and step == 2 and self.global_rank == 1 and first:
                os.kill(os.getpid(), signal.SIGKILL)
            losses.append(self._run_batch(source, targets))
        print(f"[RANK{self.global_rank}] Epoch {epoch} | Loss: {sum(losses) / len(losses):.6f}", flush=True)

    def train(self, max_epochs):
        for epoch in range(self.epochs_run, max_epochs):
            self._run_epoch(epoch)
            if self.local_rank == 0 and epoch % self.save_every == 0:
                self._save_snapshot(epoch)
        weights = [round(each, 5) for each in self.model.module.weight[0, :4].tolist()]
        print(f"[RANK{self.global_rank}] Weights: {weights}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("total_epochs", type=int)
    parser.add_argument("save_every", type=int)
    parser.add_argument("folder")
    parser.add_argument("--batch_size", default=32, type=int)
    parser.add_argument("--die-in-epoch", default=-1, type=int)
    args = parser.parse_args()
    init_process_group(backend="gloo")
    torch.manual_seed(int(os.environ["RANK"]))
    model = torch.nn.Linear(20, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = ToyDataset(256)
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=False, sampler=DistributedSampler(data))
    path = os.path.join(args.folder, "snapshot.pt")
    Trainer(model, loader, optimizer, args.save_every, path, args.die_in_epoch).train(args.total_epochs)
    destroy_process_group()


if __name__ == "__main__":
    main()
