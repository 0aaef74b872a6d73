"""The command line: one file a command in ``outputs.commands``, the only code that prints, reads ``argv``, or writes files.

Exit codes: 0 done, 1 a check failed, 2 bad input, 3 a configuration that cannot exist.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

import click

from derive.errors import DeriveError, nearest, one_line, path_named
from outputs.commands.bound import bound
from outputs.commands.cache import cache
from outputs.commands.check import check
from outputs.commands.code import code
from outputs.commands.completion import completion, offer
from outputs.commands.confront import confront
from outputs.commands.devices import devices
from outputs.commands.explain import QUESTIONS, explain
from outputs.commands.laws import laws
from outputs.commands.lists import machines, schedules, variants
from outputs.commands.paper import paper
from outputs.commands.plot import plot
from outputs.commands.reload import reload
from outputs.commands.report import report
from outputs.commands.steps import steps
from outputs.commands.sweep import sweep
from outputs.commands.tiles import tiles

VERSION = "0.1.0"
COMMANDS: tuple[click.Command, ...] = (
    bound, cache, check, code, completion, confront, devices, explain, laws, machines, paper, plot, reload, report, schedules,
    steps, sweep, tiles, variants,
)  # fmt: skip
_EXAMPLES = f"""{QUESTIONS}  derive steps mha --schedule flash2      the derivation, rule by rule
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


for _command in COMMANDS:
    main.add_command(_command)
offer(COMMANDS)

if __name__ == "__main__":
    main()
