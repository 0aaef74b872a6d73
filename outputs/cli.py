"""The command line: with ``outputs.commands``, the only code that prints, reads ``argv``, or writes files.

Exit codes: 0 done, 1 a check failed, 2 bad input, 3 a configuration that cannot exist.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from derive.errors import DeriveError, PreconditionError, nearest, one_line, path_named
from outputs.bound_command import bound_command
from outputs.commands import cache, code, completion, confront, devices, laws, paper, plot, reload, report, steps, sweep
from outputs.commands.progress import waiting
from outputs.tiles_command import tiles_command

if TYPE_CHECKING:
    from outputs.explanation import Explanation

VERSION = "0.1.0"
_QUESTIONS = """\b
Examples:
  derive explain mha N=8192 d=128 --on h100-sxm
  derive explain gqa N=8K d=128 h=32 hk=8 mask=causal --schedule flash2,flash2-packed
  derive explain mha                      closed forms, no numbers
"""
_EXAMPLES = f"""{_QUESTIONS}  derive steps mha --schedule flash2      the derivation, rule by rule
  derive check mha --schedule flash2 --samples 1000
"""


class OneSentence(click.Group):
    """A group whose errors are one sentence on stderr, without a usage block."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command and end the process with its exit code."""
        kwargs["standalone_mode"] = False
        gc.disable()  # imports and one answer make little garbage; looking for it took a tenth of the time
        try:
            result = super().main(*args, **kwargs)
            sys.stdout.flush()
        except click.exceptions.Abort:
            _fail("interrupted", 130)
        except click.exceptions.NoArgsIsHelpError as asked:
            click.echo(asked.format_message())
            sys.exit(0)
        except click.ClickException as error:
            _fail(error.format_message(), 2)
        except DeriveError as error:
            _fail(str(error), error.exit_code)
        except BrokenPipeError:
            sys.stderr.close()  # the reader has gone: nothing more to say
            sys.exit(0)
        except OSError as error:  # of stdout: a full disk
            sys.stdout = None  # nothing is left to be written at the end
            _fail(f"{path_named(error.filename or 'the answer')} cannot be written: {error.strerror}", 2)
        sys.exit(result if isinstance(result, int) else 0)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command *cmd_name*, or the nearest one in the error."""
        found = super().get_command(ctx, cmd_name)
        if found is None:
            raise nearest("command", cmd_name, self.list_commands(ctx), "derive --help")
        return found


def _fail(sentence: str, code: int) -> None:
    click.echo(f"error: {one_line(sentence)}", err=True)
    sys.exit(code)


@click.group(cls=OneSentence, epilog=_EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="derive")
def main() -> None:
    """How many bytes an attention kernel moves, how many FLOPs it runs, and why: derived from its graph."""


def _question(command: Any) -> Any:
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
            default="exact",
            show_default=True,
            help="How masked pairs count as useful work.",
        ),
        click.option(
            "--order",
            type=click.Choice(["head", "query"]),
            default="head",
            show_default=True,
            help="What is outermost in the grid.",
        ),
        click.option(
            "--sweep",
            type=click.Choice(["forward", "sawtooth"]),
            default="forward",
            show_default=True,
            help="Direction in which waves of CTAs sweep the keys.",
        ),
        click.option(
            "--l2",
            type=click.Choice(["nominal", "effective"]),
            default="nominal",
            show_default=True,
            help="Capacity of the L2: the data sheet's, or what measured sweeps keep at full speed.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


_KEYS_HELP = """\b
KEY=VALUE sets a symbol; one left out stays symbolic:
  N (both lengths), Nq, Nk, d, dv, h, hk, B    sizes: 8192, 8K or 8Ki
  Br, Bc, M (elements), ctas, L2=50MiB         tiles and machine
  pad=64                                       widths of products run in multiples of it
  splits                                       parts of the keys (split-kv); on a machine, the fastest modelled
  dtype, kv, scores, probs, stats, acc         element types: bf16, fp8, fp32 ...; partials= of split-kv (fp32)
  mask=full | causal | window W= | window left= right= | chunk C= | prefix prefix= | sinks sinks= W= |
       global-local globals= left= right= | dilated W= dilation= | block-sparse s=0.1; -tl behind a name is top-left
  mask=docs | docs-full, docs=512,512,1024     packed documents, causal or whole inside
  KEY=?                                        leave a default open, e.g. h=?
"""


@main.command(epilog=f"{_QUESTIONS}\n{_KEYS_HELP}")
@_question
@click.option("--json", "json_", is_flag=True, help="One JSON object on stdout.")
@click.option("--steps", "with_steps", is_flag=True, help="Add the full derivation.")
@click.option("-o", "output", type=click.Path(dir_okay=False), help="Write a LaTeX document (FILE.tex) instead.")
def explain(json_: bool, with_steps: bool, output: str | None, **question: Any) -> None:
    """FLOPs, bytes, residency and time of VARIANT, each derived and each with its reason."""
    if output is not None and Path(output).suffix != ".tex":
        raise click.BadParameter(f"-o {output}: only FILE.tex is written; use --json for data")
    with waiting("derive explain"):
        answer = _answer(**question)
    if output is not None:
        from outputs.paper.document import single

        _write(Path(output), single(answer, f"derive explain {question['variant']} -o {output}"))
        return
    if json_:
        import json

        from outputs.as_json import as_json

        click.echo(json.dumps(as_json(answer), indent=1))
        return
    from outputs import text

    with waiting("derive explain"):
        sections = text.explain(answer) + (text.steps(answer) if with_steps else [])
    _show(sections)


def _answer(
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
    return answer


@main.command(epilog="Example: derive variants --json")
@click.option("--json", "json_", is_flag=True, help="A JSON list.")
def variants(json_: bool) -> None:
    """The variants of attention that can be asked about, each with the sizes it is written in."""
    from derive.attention import names, variant
    from derive.symbols import MEANINGS

    rows = []
    for name in names():
        found = variant(name)
        keys = [m.key for s, m in MEANINGS.items() if s in {x.name for x in found.symbols}]
        rows.append({"name": name, "says": found.says, "symbols": keys, "reference": found.reference})
    _list(rows, json_)


@main.command(epilog="Example: derive schedules --json")
@click.option("--json", "json_", is_flag=True, help="A JSON list.")
def schedules(json_: bool) -> None:
    """The schedules, each a tuple of rules."""
    from rules.derivations import names, plan

    _list([{"name": n, "says": plan(n).says, "reference": plan(n).reference} for n in names()], json_)


@main.command(epilog="Examples: derive machines, and derive machines h100-sxm")
@click.argument("name", required=False)
@click.option("--json", "json_", is_flag=True, help="JSON instead of a table.")
def machines(name: str | None, json_: bool) -> None:
    """The machines; with NAME, every constant of one with its kind, source and date."""
    from hardware import load, names

    if name is None:
        _list([{"name": n, "says": load(n).name, "reference": ""} for n in names()], json_)
        return
    machine = load(name)
    rows = [
        {
            "constant": c.name,
            "value": c.as_printed,
            "kind": c.kind + (f", {c.sparsity}" if c.sparsity else ""),
            "source": c.source,
            "date": str(c.date),
            "readings": [{"value": r.text, "source": r.source} for r in c.readings],
            "note": c.note,
        }
        for c in machine.constants.values()
    ]
    if json_:
        _list(rows, json_=True)
        return
    from outputs.layout import Section, Table

    table = Table(("constant", "value", "kind", "source, and the readings that disagree"))
    for row, c in zip(rows, machine.constants.values(), strict=True):
        disagree = "".join(f"; {r.text}: {r.source}" for r in c.readings)
        table.add(c.name, c.as_printed, str(row["kind"]), f"{c.source} ({c.date}){disagree}")
    absent = [f"{a.name}: {a.reason}" for a in machine.absent.values()]
    _show([Section(f"{machine.id}: {machine.name}", table, absent)])


@main.command(epilog="Example: derive check gqa --schedule flash2,split-kv --samples 1000")
@_question
@click.option("--samples", default=200, show_default=True, type=click.IntRange(1, 10**6), help="Configurations to try.")
@click.option("--seed", default=0, show_default=True, type=int, help="Seed of the random configurations.")
@click.option("--json", "json_", is_flag=True, help="One JSON object on stdout.")
def check(samples: int, seed: int, json_: bool, **question: Any) -> int:
    """Closed forms of VARIANT against code that shares nothing with them, on random configurations."""
    from outputs.checking import check_schedules, report

    gc.enable()  # this one runs long
    progress = (
        None if json_ or not sys.stderr.isatty() else (lambda words: click.echo(f"\r{words}", err=True, nl=False))
    )
    found = check_schedules(question, samples=samples, seed=seed, progress=progress)
    if json_:
        import json

        click.echo(json.dumps(found.as_json(), indent=1))
    else:
        if progress:
            click.echo("", err=True)
        _show(report(found))
    return 0 if found.mismatches == 0 else 1


def _list(rows: list[dict[str, Any]], json_: bool) -> None:
    """Names with what they stand for."""
    if json_:
        import json

        click.echo(json.dumps(rows, indent=1))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        symbols = f"  ({', '.join(row['symbols'])})" if row.get("symbols") else ""
        reference = f"  [{row['reference']}]" if row["reference"] else ""
        click.echo(f"{row['name']:<{width}}  {row['says']}{symbols}{reference}")


def _show(sections: list[Any]) -> None:
    """Print *sections* to stdout: colour only on a terminal, as wide as it is."""
    from rich.console import Console

    from outputs.layout import show

    show(sections, Console(soft_wrap=False, width=None if sys.stdout.isatty() else _columns()))


main.add_command(tiles_command(_show))


def _columns() -> int:
    """The width of output that goes to no terminal: ``COLUMNS``, else 120."""
    import os

    columns = os.environ.get("COLUMNS", "")
    return min(max(40, int(columns)), 1000) if columns.isdecimal() and len(columns) < 9 else 120


def _write(path: Path, content: str) -> None:
    """Write *content*, or say why not; an existing file is only replaced whole."""
    from outputs.writing import write

    write({path: content}, force=True)
    click.echo(f"wrote {path_named(path)}", err=True)


main.add_command(bound_command(_show, _write))
steps.add(main, _question, _answer, _show, _KEYS_HELP)
paper.add(main, _question, _answer)
code.add(main, _question, _answer)
report.add(main, _question, _answer)
plot.add(main, _question, _answer)
sweep.add(main, _question, _answer)
devices.add(main, _show)
cache.add(main, _show)
laws.add(main, _question, _answer, _show)
confront.add(main, _question, _answer, _show)
reload.add(main)
completion.add(main)  # last: it offers words for what stands before it

if __name__ == "__main__":
    main()
