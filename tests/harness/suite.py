"""What the suites of all parts share: named outputs, refusals, cases."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
import torch

from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import View, name
from tests.harness.launches import check_where_it_launches

Named = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Refusal:
    """A call that must raise a ValueError.

    Attributes:
        said: the message begins so; a regular expression.
        change: what to do to which inputs of an ordinary call.
        options: added to it.
    """

    said: str
    change: Mapping[str, View] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


def of_each(
    tensors: Iterable[str], what: str, change: View, said: str
) -> dict[str, Refusal]:
    """One refusal for each of some tensors; `said` follows its name in the message."""
    return {
        f"{what} of {tensor}": Refusal(f"{tensor} {said}", {tensor: change})
        for tensor in tensors
    }


class Suite:
    """What holds of a function under test.

    A part's suite derives from it, and says how to make inputs and what is right. The
    test module of a snippet derives from that, and says what is special about it; a
    test that does not apply, it sets to None.

    Attributes:
        function: the function under test.
        outputs: the names of what it returns; tests.harness.accuracy knows them.
        blocks: options to try: all give the same result. Most tests use the first,
            whose tiles are small: a few rows make several tiles.
        asked: the other options, which the reference and the baseline take too.
    """

    function: ClassVar[Callable[..., Any]]
    outputs: ClassVar[tuple[str, ...]]
    blocks: ClassVar[tuple[dict[str, Any], ...]] = ({},)
    asked: ClassVar[tuple[str, ...]] = ()

    def example(self, device: str) -> Named:
        """The inputs of an ordinary call, by the name of their parameter."""
        raise NotImplementedError

    def reference(self, *inputs: torch.Tensor, **asked: Any) -> Any:
        """The outputs in float64."""
        raise NotImplementedError

    def baseline(self, *inputs: torch.Tensor, **asked: Any) -> Any:
        """The outputs as PyTorch computes them, in the dtype of the inputs."""
        raise NotImplementedError

    def refusals(self) -> dict[str, Refusal]:
        """What the function must refuse, by what is wrong."""
        return {}

    def cases(self) -> dict[str, Iterable[Any]]:
        """What to try for arguments of these names."""
        return {"refusal": self.refusals()}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Cases from the attributes of the class."""
        for argument, values in self.cases().items():
            if argument in metafunc.fixturenames:
                ids = name if argument == "dtype" else str
                metafunc.parametrize(argument, list(values), ids=ids)

    def named(self, results: Any) -> Named:
        """The outputs by name, of those that a function of this kind returned."""
        if isinstance(results, dict):
            return results
        results = results if isinstance(results, tuple) else (results,)
        return dict(zip(self.outputs, results, strict=False))

    def run(
        self,
        *inputs: torch.Tensor,
        blocks: Mapping[str, Any] | None = None,
        **asked: Any,
    ) -> Named:
        """The outputs, with the first of `blocks` or those given."""
        blocks = self.blocks[0] if blocks is None else blocks
        found = self.function(*inputs, **{**blocks, **asked})
        assert isinstance(found, tuple) == (len(self.outputs) > 1)
        return self.named(found)

    def check(
        self,
        *inputs: torch.Tensor,
        judge: Callable[..., Any] = check_accuracy,
        **options: Any,
    ) -> Named:
        """Run the function and hold its outputs against the rule; returns them."""
        found = self.run(*inputs, **options)
        asked = {word: options[word] for word in self.asked if word in options}
        expected, own = (
            self.reference(*inputs, **asked),
            self.baseline(*inputs, **asked),
        )
        self.compare(found, expected, own, judge=judge)
        return found

    def compare(
        self,
        found: Any,
        expected: Any,
        own: Any,
        *,
        judge: Callable[..., Any] = check_accuracy,
    ) -> None:
        """Hold what was found against reference and baseline, all as they return it."""
        judge(*map(self.named, (found, expected, own)))

    def test_refuses(self, refusal: str, device: str) -> None:
        wanted, inputs = self.refusals()[refusal], self.example(device)
        changed = {key: change(inputs[key]) for key, change in wanted.change.items()}
        options = {**self.blocks[0], **wanted.options}
        with pytest.raises(ValueError, match=f"^{wanted.said}"):
            self.function(**{**inputs, **changed}, **options)

    def test_refuses_to_lose_a_gradient(self, device: str) -> None:
        good = self.example(device)
        for tensor, x in good.items():
            if not x.is_floating_point():
                continue
            inputs = {**good, tensor: x.detach().requires_grad_()}
            with pytest.raises(ValueError, match=f"^{tensor} requires a gradient"):
                self.function(**inputs, **self.blocks[0])
            with torch.no_grad():
                self.function(**inputs, **self.blocks[0])

    def test_launches_on_the_device_of_its_inputs(self, device: str) -> None:
        inputs = self.example(device).values()
        check_where_it_launches(self.function, *inputs, **self.blocks[0])
