"""The network of `reprise bench train` in PyTorch: what its users have today, measured the same way.

Prints one JSON object: for each batch the microseconds of a training step (median, 10th and 90th
percentile) run eagerly, with one pair of graphs for the whole network, with a pair for each layer
(torch.cuda.make_graphed_callables), and as one graph; and whether gradients that three micro-batches
add up are the eager ones.

  python3 bench/peers/pytorch_train.py --batch 32,512 --steps 50
"""

import argparse
import json
import statistics
import sys
import time

LAYERS, WIDTH, RATE, WARM_UP = 24, 256, 1e-3, 10


def block(torch):
    return torch.nn.Sequential(
        torch.nn.Linear(WIDTH, WIDTH), torch.nn.LayerNorm(WIDTH), torch.nn.GELU()
    )


def network(torch):
    torch.manual_seed(0)
    return torch.nn.Sequential(*[block(torch) for _ in range(LAYERS)]).cuda()


class Training:
    """A network, its optimizer, and one batch that every step is made of."""

    def __init__(self, torch, batch):
        self.torch = torch
        self.net = network(torch)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=RATE, foreach=True)
        draw = torch.Generator(device="cuda").manual_seed(1)
        self.x = torch.randn(batch, WIDTH, device="cuda", generator=draw)
        self.target = torch.randn(batch, WIDTH, device="cuda", generator=draw)
        self.forward = self.net

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = torch_mse(self.forward(self.x), self.target)
        loss.backward()
        self.optimizer.step()


def torch_mse(a, b):
    return (a - b).square().mean()


def eager(torch, batch):
    return Training(torch, batch).step


def one_pair(torch, batch):
    training = Training(torch, batch)
    training.forward = torch.cuda.make_graphed_callables(training.net, (training.x.clone(),))
    return training.step


def pair_per_layer(torch, batch):
    training = Training(torch, batch)
    inside = tuple(
        (torch.randn(batch, WIDTH, device="cuda", requires_grad=i > 0),) for i in range(LAYERS)
    )
    training.forward = torch.nn.Sequential(
        *torch.cuda.make_graphed_callables(tuple(training.net), inside)
    )
    return training.step


def whole_step(torch, batch):
    training = Training(torch, batch)
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):
            training.step()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        training.step()
    return graph.replay


def spread(values):
    values = sorted(values)
    last = len(values) - 1
    return {
        "median": statistics.median(values),
        "p10": values[round(0.1 * last)],
        "p90": values[round(0.9 * last)],
        "count": len(values),
    }


def measure(torch, step, steps):
    """Each step alone: from its first call until the device was done with it."""
    for _ in range(WARM_UP):
        step()
    host, whole = [], []
    for _ in range(steps):
        torch.cuda.synchronize()
        began = time.perf_counter()
        step()
        host.append((time.perf_counter() - began) * 1e6)
        torch.cuda.synchronize()
        whole.append((time.perf_counter() - began) * 1e6)
    return {"step_us": spread(whole), "host_us": spread(host)}


def accumulates_exactly(torch):
    """Whether three micro-batches leave the gradients that eager runs of the same layer leave."""
    torch.manual_seed(2)
    plain = torch.nn.Linear(64, 64).cuda()
    graphed = torch.nn.Linear(64, 64).cuda()
    graphed.load_state_dict(plain.state_dict())
    replayed = torch.cuda.make_graphed_callables(graphed, (torch.randn(8, 64, device="cuda"),))
    for layer in (plain, graphed):
        for parameter in layer.parameters():
            parameter.grad = None
    for _ in range(3):
        x = torch.randn(8, 64, device="cuda")
        plain(x).square().sum().backward()
        replayed(x).square().sum().backward()
    return all(
        torch.equal(a.grad, b.grad) for a, b in zip(plain.parameters(), graphed.parameters())
    )


def main():
    typed = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    typed.add_argument("--batch", default="32,512")
    typed.add_argument("--steps", type=int, default=50)
    options = typed.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("PyTorch is not installed: there is no peer to measure here")
    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU: there is no peer to measure here")
    ways = {
        "eager": eager,
        "one pair": one_pair,
        "a pair per layer": pair_per_layer,
        "whole step": whole_step,
    }
    rows = []
    for batch in (int(size) for size in options.batch.split(",")):
        for name, make in ways.items():
            step = make(torch, batch)
            rows.append({"batch": batch, "way": name} | measure(torch, step, options.steps))
            del step
    json.dump(
        {
            "peer": f"PyTorch {torch.__version__}",
            "device": torch.cuda.get_device_name(),
            "steps": rows,
            "accumulated_gradients_are_eager": accumulates_exactly(torch),
        },
        sys.stdout,
    )
    print()


if __name__ == "__main__":
    main()
