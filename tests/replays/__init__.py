"""What a replay is: one run of a published kernel, told line by line.

tests/replays/<part>/<name>.py describes the replays of snippets/<part>/<name>.py in
`REPLAY`: what is called with which inputs, what is shown, and a sentence for each line.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from tests.replays.sentences import Moment

Tensors = Mapping[str, torch.Tensor]
Sentence = str | Callable[["Moment"], str]


@dataclass(frozen=True)
class Show:
    """Something that the reader sees: an array in memory, or a variable on the chip.

    Attributes:
        name: of a kernel's parameter without "_ptr", or of a local variable.
        colour: its class in mkdocs.yml without "t-"; "" for one that has none.
        title: in words.
        label: the symbol, if it is not the colour.
        level: where a variable is held, "registers" or "shared".
        turned: it is drawn transposed.
        place: the variable in whose place it is drawn.
        kept: it stays to the end, although no line may read it any more.
    """

    name: str
    colour: str
    title: str
    label: str = ""
    level: str = "registers"
    turned: bool = False
    place: str = ""
    kept: bool = False


@dataclass(frozen=True)
class Map:
    """A matrix that is never stored, such as all scores: what a variable once was.

    Attributes:
        show: how it is shown.
        of: the variable, a tile of it.
        rows, cols: the variables with the numbers of the rows and columns of the tile.
        shape: from the inputs.
    """

    show: Show
    of: str
    rows: str
    cols: str
    shape: Callable[..., tuple[int, int]]


@dataclass(frozen=True)
class Run:
    """One input: its title, and the arguments of the call.

    `call` and `formulas` take the place of those of all runs. `parts` are for runs that
    merge parts in all orders, with what each merge makes as their names, "02.13.0123":
    the parts before each merge, and after the last, with what the reader sees of them.
    """

    title: str
    inputs: Tensors
    call: Callable[..., Tensors] | None = None
    formulas: Mapping[str, str] = field(default_factory=dict)
    parts: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True)
class Replay:
    """The replays of one snippet.

    Attributes:
        call: takes the inputs of a run, launches, and returns the outputs by name.
        expected: the outputs by PyTorch, in the dtype of the inputs.
        runs: by name, the first to be shown first.
        memory: the arrays.
        state: the variables.
        lines: what is said of a line. A key is the name of a marked line, or a part of
            one line's text, after "section: " where the file has it several times; with
            "each " before it, it means all lines that have it. A sentence is a format
            string that may use what a Moment has, or a function of the Moment that
            returns one. Where it is "", the line is not shown, and what it changes is
            shown with the next.
        frames: the line, by its key, whose steps are the key frames, before the last.
        program: what a program is called, of any kernel or by kernel; {0}, {1} and {2}
            are its index, {launch} says how many launches, or calls of a function,
            there were before. "" where its number says enough.
        formulas: bytes "read" and "written", as a product and a sum of symbols.
        symbols: the values of the symbols, from the inputs.
        gain: the end of the last sentence: what the run has saved, or still costs.
        rows: the variable with the numbers of the rows of a tile, if it has rows.
        follow: the variable whose largest change picks the row that is spoken of, or
            two of them as "m_i to m_new".
        functions: which functions are shown, where they are no kernels. Each call takes
            the place of a program; a view of an input that they bind is loaded, and
            what they return is the variable "return".
        unit: what a reader calls a program, where it is none.
        wrong: the output is wrong on purpose: it must not be what is expected.
        maps: matrices beside those in memory.
        beside: another snippet, whose replay is shown at the same step.
        sizes: how large each level is on a GPU, and who says so.
        names: what arrays and variables are called that would be of one name, by
            "kernel.name".
    """

    call: Callable[..., Tensors]
    expected: Callable[..., Tensors]
    runs: Mapping[str, Run]
    memory: Sequence[Show]
    state: Sequence[Show]
    lines: Mapping[str, Sentence]
    frames: str
    program: str | Mapping[str, str]
    formulas: Mapping[str, str]
    symbols: Callable[..., Mapping[str, int]]
    gain: str
    rows: str = ""
    follow: str = ""
    functions: Sequence[str] = ()
    unit: str = "program"
    wrong: bool = False
    maps: Sequence[Map] = ()
    beside: str = ""
    sizes: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
