"""Faults of torch with more than one process: data loader workers, stores, rendezvous, collectives, backends."""

from __future__ import annotations

from crashpath.coverage.app import Code
from crashpath.coverage.fault import Arena, Fault


def _nccl_absent(arena: Arena) -> None:
    arena.serve(
        Code.of(
            """
            dist.init_process_group("nccl", init_method="file://" + rendezvous, rank=0, world_size=1)
            return torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
            """,
            "import torch\nimport torch.distributed as dist",
            rendezvous=arena.path("run/{model}.rdzv"),
        )
    )


def _loader_timeout(arena: Arena) -> None:
    v = arena.variation
    arena.serve(
        Code.of(
            """
            requests = DataLoader(SlowRequests(width), batch_size=batch, num_workers=1, timeout=1)
            for features in requests:
                return features.sum()
            """,
            "import time\n\nimport torch\nfrom torch.utils.data import DataLoader, Dataset",
            definitions="""
            class SlowRequests(Dataset):
                def __init__(self, width):
                    self.width = width

                def __len__(self):
                    return 64

                def __getitem__(self, index):
                    time.sleep(30)  # the feature store does not answer
                    return torch.zeros(self.width)
            """,
            phase="infer",
            once=True,
            batch=v.batch,
            width=v.width,
        )
    )


def _store_timeout(arena: Arena) -> None:
    arena.serve(
        Code.of(
            """
            store = dist.TCPStore("127.0.0.1", 0, workers, is_master=True, timeout=timedelta(seconds=1))
            return store
            """,
            "from datetime import timedelta\n\nimport torch.distributed as dist",
            once=True,
            workers=arena.rng.choice((2, 4, 8)),
        )
    )


def _rendezvous_timeout(arena: Arena) -> None:
    arena.serve(
        Code.of(
            """
            dist.init_process_group(
                "gloo",
                init_method="file://" + rendezvous,
                rank=rank,
                world_size=workers,
                timeout=timedelta(seconds=2),
            )
            return dist.group.WORLD
            """,
            "from datetime import timedelta\n\nimport torch.distributed as dist",
            once=True,
            rendezvous=arena.path("run/{model}.rdzv"),
            rank=arena.rng.choice((0, 1)),
            workers=arena.rng.choice((2, 4)),
        )
    )


def _collective_timeout(arena: Arena) -> None:
    v = arena.variation
    call = arena.rng.choice(("dist.all_reduce(scores)", "dist.broadcast(scores, src=1)", "dist.barrier()"))
    arena.serve(
        Code.of(
            f"""
            peer = multiprocessing.get_context("fork").Process(target=join, args=(1, rendezvous), daemon=True)
            peer.start()
            join(0, rendezvous)
            scores = torch.zeros(batch, width)
            {call}
            return scores
            """,
            """
            import multiprocessing
            import time
            from datetime import timedelta

            import torch
            import torch.distributed as dist
            """,
            definitions="""
            def join(rank, rendezvous):
                dist.init_process_group(
                    "gloo",
                    init_method="file://" + rendezvous,
                    rank=rank,
                    world_size=2,
                    timeout=timedelta(seconds=3),
                )
                if rank == 1:
                    time.sleep(60)  # this worker is stuck in its own request
            """,
            phase="infer",
            once=True,
            rendezvous=arena.path("run/{model}.rdzv"),
            batch=v.batch,
            width=v.width,
        )
    )


FAULTS = (
    Fault("torch-nccl-absent", "device_init", "load", "torch", "start the NCCL backend on a CPU build", _nccl_absent),
    Fault(
        "torch-loader-timeout", "hang", "infer", "torch", "wait for a data loader's worker that sleeps", _loader_timeout
    ),
    Fault(
        "torch-store-timeout",
        "load_timeout",
        "load",
        "torch",
        "wait for workers that never reach the store",
        _store_timeout,
    ),
    Fault(
        "torch-rendezvous-timeout",
        "load_timeout",
        "load",
        "torch",
        "wait for peers that never join the group",
        _rendezvous_timeout,
    ),
    Fault(
        "torch-collective-timeout",
        "hang",
        "infer",
        "torch",
        "wait in a collective for a peer that is stuck",
        _collective_timeout,
    ),
)
