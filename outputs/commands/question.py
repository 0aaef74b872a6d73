"""What every command about a variant is asked: its arguments, and how they become an explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from derive.errors import PreconditionError

if TYPE_CHECKING:
    from outputs.explanation import Explanation

KEYS = """\b
KEY=VALUE sets a symbol; one left out stays symbolic:
  N (both lengths), Nq, Nk, d, dv, h, hk, B    sizes: 8192, 8K or 8Ki
  Br, Bc, M (elements), ctas, L2=50MiB         tiles and machine
  pad=64                                       widths of products run in multiples of it
  splits                                       parts of the keys (split-kv, flash2-backward-split); on a machine, the
                                               fastest modelled
  dtype, kv, scores, probs, stats, acc         element types: bf16, fp8, fp32 ...; partials= of parts (fp32)
  mask=full | causal | window W= | window left= right= | chunk C= | prefix prefix= | sinks sinks= W= |
       global-local globals= left= right= | dilated W= dilation= | block-sparse s=0.1 |
       blocks block=128 blocks=0/0,1/0,2-3 (or blocks=@FILE); -tl behind a name is top-left
  mask=docs | docs-full, docs=512,512,1024     packed documents, causal or whole inside
  KEY=?                                        leave a default open, e.g. h=?
"""
_CHOICES = {"convention": "exact", "order": "head", "sweep": "forward", "l2": "nominal"}
"""Options with a fixed choice of words, and what they are unless given."""


def question(command: Any) -> Any:
    """The arguments that every command about a variant takes."""
    options = (
        click.argument("variant"),
        click.argument("symbols", nargs=-1, metavar="[KEY=VALUE]..."),
        click.option(
            "--schedule",
            show_default="naive,flash2",
            help="Schedules, separated by commas; of a backward pass its own.",
        ),
        click.option("--on", "machine", help="Machine to run on, e.g. h100-sxm (see `derive machines`)."),
        click.option(
            "--convention",
            type=click.Choice(["exact", "half", "dense", "tiled"]),
            default=_CHOICES["convention"],
            show_default=True,
            help="How masked pairs count as useful work.",
        ),
        click.option(
            "--order",
            type=click.Choice(["head", "query"]),
            default=_CHOICES["order"],
            show_default=True,
            help="What is outermost in the grid.",
        ),
        click.option(
            "--sweep",
            type=click.Choice(["forward", "sawtooth"]),
            default=_CHOICES["sweep"],
            show_default=True,
            help="Direction in which waves of CTAs sweep the keys.",
        ),
        click.option(
            "--l2",
            type=click.Choice(["nominal", "effective"]),
            default=_CHOICES["l2"],
            show_default=True,
            help="Capacity of the L2: the data sheet's, or what measured sweeps keep at full speed.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def formatted(command: Any) -> Any:
    """The option that prints formulas alone, for another document."""
    option = click.option(
        "--format",
        "format_",
        type=click.Choice(["text", "latex", "mathml"]),
        default="text",
        show_default=True,
        help="Formulas alone, each below a comment that says what it is, as LaTeX or MathML.",
    )
    return option(command)


def answer(
    variant: str,
    symbols: tuple[str, ...],
    schedule: str | None,
    machine: str | None,
    convention: str,
    order: str,
    sweep: str,
    l2: Literal["nominal", "effective"],
) -> Explanation:
    """The explanation that the words of the command line ask for."""
    from derive.attention import variant as find_variant
    from derive.flops import Convention
    from hardware import load
    from outputs.deduction import Options, fitting
    from outputs.explanation import Explanation
    from outputs.request import read_request

    found = load(machine) if machine is not None else None
    request = read_request(find_variant(variant), symbols)
    names = request.variant.named_schedules(schedule)
    if not names:
        raise click.BadParameter(f"--schedule names no schedule; try --schedule {','.join(request.variant.schedules)}")
    options = Options(Convention(convention), order, sweep == "sawtooth", l2)
    answer = Explanation(request, names, found, options)
    try:
        _ = answer.accounts  # so that bad input is found before anything is printed
    except PreconditionError:
        legal = fitting(request) if schedule is None else names
        if legal == names:
            raise
        answer = Explanation(request, legal, found, options)
        _ = answer.accounts
    answer.refuse_unused()
    return answer


def typed(command: str, asked: dict[str, Any], answered: Explanation) -> str:
    """The words that ask *asked* again, for the head of a file: schedules in full, options only where they were chosen."""
    schedules = asked["schedule"] or ",".join(a.name for a in answered.accounts)
    words = ["derive", command, asked["variant"], *asked["symbols"], "--schedule", schedules]
    words += ["--on", asked["machine"]] if asked["machine"] else []
    words += [word for name, usual in _CHOICES.items() if asked[name] != usual for word in (f"--{name}", asked[name])]
    return " ".join(words)
