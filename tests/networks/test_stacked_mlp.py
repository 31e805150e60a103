"""Stacked networks: shapes, independence of the members, initial weights, and bad options."""

from __future__ import annotations

import pytest
import torch

from quasiratio.errors import InvalidInputError
from quasiratio.networks import ACTIVATIONS, StackedMlp, default_hidden_layers


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("hidden_layers", [(), (7,), (8, 5)])
def test_each_network_is_an_ordinary_perceptron(activation: str, hidden_layers: tuple[int, ...]) -> None:
    mlp = StackedMlp(3, 2, hidden_layers, 4, activation=activation, generator=seeded(1))
    inputs = torch.randn(11, 2, generator=seeded(2))
    outputs = mlp(inputs)
    assert outputs.shape == (3, 11, 4)
    for network in range(3):
        hidden = inputs
        for layer, (weight, bias) in enumerate(zip(mlp.weights, mlp.biases, strict=True)):
            hidden = hidden @ weight[network] + bias[network]
            if layer < len(hidden_layers):
                hidden = ACTIVATIONS[activation](hidden)
        torch.testing.assert_close(outputs[network], hidden)


def test_each_half_of_a_stack_may_have_its_own_activation() -> None:
    mixed = StackedMlp(5, 2, (7, 6), 4, activation="silu+hardswish", generator=seeded(1))
    inputs = torch.randn(11, 2, generator=seeded(2))
    for name, networks in (("silu", slice(0, 3)), ("hardswish", slice(3, 5))):
        alone = StackedMlp(5, 2, (7, 6), 4, activation=name, generator=seeded(1))
        torch.testing.assert_close(mixed(inputs)[networks], alone(inputs)[networks])
    with torch.no_grad():
        without = mixed(inputs)  # in place
    torch.testing.assert_close(mixed(inputs), without)


def test_an_unknown_activation_among_several_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"'silu\+swish'; expected one of silu, relu.* joined by \+"):
        StackedMlp(2, 2, (4,), 1, activation="silu+swish")


def test_networks_may_see_their_own_events() -> None:
    mlp = StackedMlp(2, 3, (6,), 1, generator=seeded(1))
    inputs = torch.randn(2, 5, 3, generator=seeded(2))
    outputs = mlp(inputs)
    for network in range(2):
        torch.testing.assert_close(outputs[network], mlp(inputs[network])[network])


def test_gradients_do_not_cross_members() -> None:
    mlp = StackedMlp(3, 2, (6,), 1, generator=seeded(1))
    mlp(torch.ones(4, 2))[1].sum().backward()
    for parameter in mlp.parameters():
        assert parameter.grad is not None
        assert bool((parameter.grad[0] == 0).all())
        assert bool((parameter.grad[2] == 0).all())
    last_bias = mlp.biases[-1].grad
    assert last_bias is not None
    assert float(last_bias[1].sum()) == 4.0


def test_members_start_from_their_own_weights_and_seeds_repeat() -> None:
    first, again, other = (StackedMlp(2, 2, (6,), 1, generator=seeded(seed)) for seed in (1, 1, 2))
    inputs = torch.ones(1, 2)
    assert torch.equal(first(inputs), again(inputs))
    assert not torch.equal(first(inputs), other(inputs))
    assert not torch.equal(first(inputs)[0], first(inputs)[1])
    bound = 1.0 / 2**0.5
    assert float(first.weights[0].detach().abs().max()) <= bound


@pytest.mark.parametrize(
    ("n_features", "n_events", "expected"),
    [(1, 10**7, (64, 64)), (4, 100, (64, 64)), (5, 400_000, (64,) * 3), (16, 400_001, (128,) * 3)],
)
def test_the_default_width_grows_with_the_problem(
    n_features: int, n_events: int, expected: tuple[int, ...]
) -> None:
    assert default_hidden_layers(n_features, n_events) == expected


def test_an_unknown_activation_lists_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match="'swish'; expected one of silu, relu, tanh, gelu"):
        StackedMlp(1, 2, (3,), 1, activation="swish")


@pytest.mark.parametrize("hidden_layers", [(), (8,), (8, 4), (8, 4, 6)])
def test_wider_networks_that_are_means_of_others(hidden_layers: tuple[int, ...]) -> None:
    """Six networks, three starts of two: numbers 0, 2, 4 become the first, and 1, 3, 5 the second."""
    mlp = StackedMlp(6, 3, hidden_layers, 2, generator=torch.Generator().manual_seed(0))
    means = mlp.averaged(3)
    inputs = torch.randn(50, 3, generator=torch.Generator().manual_seed(1))
    assert means.n_networks == 2
    wanted = mlp(inputs).view(3, 2, 50, 2).mean(dim=0)
    torch.testing.assert_close(means(inputs), wanted, atol=1e-6, rtol=1e-5)
