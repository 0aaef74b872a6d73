"""``derive completion``: a shell's script, and the words it offers; none of them waits for SymPy.

Tables that stand beside symbols are read from their files instead of being imported, since the import is most of the time that
a person would wait for a word.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ZshComplete, add_completion_class

_EXAMPLES = """\b
Examples:
  eval "$(derive completion bash)"                    in ~/.bashrc
  eval "$(derive completion zsh)"                     in ~/.zshrc, behind compinit
  derive completion fish > ~/.config/fish/completions/derive.fish
"""
Words = Callable[[str], list[str]]
"""From what has been typed of a word, the words that it may become."""


class Completed(click.types.StringParamType):
    """Text, with words to choose from; any other text is left for the command to judge."""

    def __init__(self, words: Words) -> None:
        self._words = words

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The words that begin like *incomplete*."""
        given = ctx.params.get(param.name or "") or ()
        taken = {word.partition("=")[0] for word in given} if isinstance(given, tuple) else set()
        words = [word for word in self._words(incomplete) if word.startswith(incomplete)]
        return [CompletionItem(word) for word in words if word.partition("=")[0] not in taken]


@add_completion_class
class Bash(BashComplete):
    """Bash cuts words at ``=``: they are put together again, and the part before it is not offered twice."""

    source_template = BashComplete.source_template.replace(
        "    return 0\n", "    [[ ${COMPREPLY[*]} == *= ]] && compopt -o nospace\n\n    return 0\n"
    )

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one being typed, and that one."""
        args, last = super().get_completion_args()
        joined: list[str] = []
        for word in (*args, last):
            if joined and (word == "=" or joined[-1].endswith("=")):
                joined[-1] += word
            else:
                joined.append(word)
        return joined[:-1], joined[-1]

    def format_completion(self, item: CompletionItem) -> str:
        """The word for Bash; of KEY=VALUE the value alone."""
        key, sign, value = str(item.value).partition("=")
        return f"{item.type},{value if sign and value else key + sign}"


@add_completion_class
class Zsh(ZshComplete):
    """Zsh puts a space behind a word, and KEY= wants none."""

    source_template = ZshComplete.source_template.replace("compadd -U -V unsorted", "compadd -U -V unsorted -S ''")


@add_completion_class
class Fish(FishComplete):
    """Fish cuts an answer at its commas: at the first alone, since a word may have more."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')


@click.command(epilog=_EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """A script for SHELL that completes commands, variants, schedules, machines and KEY= names."""
    from click.shell_completion import ShellComplete, get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(ShellComplete.source(found(context.find_root().command, {}, "derive", "_DERIVE_COMPLETE")))


def offer(commands: Iterable[click.Command]) -> None:
    """Give words to choose from to what *commands* take: a variant, a schedule, a machine, KEY=VALUE."""
    for param in (param for command in commands for param in command.params):
        words = _OFFERED.get(param.name or "")
        if words is not None and type(param.type) is click.types.StringParamType:
            param.type = Completed(words)


def _variants(_: str) -> list[str]:
    from derive.attention import names

    return list(names())


def _schedules(incomplete: str) -> list[str]:
    """Each name behind those that a comma ends."""
    from rules.derivations import names

    before = incomplete[: incomplete.rfind(",") + 1]
    return [before + name for name in names() if name not in before.split(",")]


def _machines(_: str) -> list[str]:
    from hardware import names

    return list(names())


def _keys(incomplete: str) -> list[str]:
    """KEY= of every symbol, list, type and the mask; behind ``=`` the names of masks and types."""
    types = _texts("outputs.request", "_GROUPS")
    key, sign, _ = incomplete.partition("=")
    if not sign:
        symbols = [first for first, _ in _calls("derive.symbols", "MEANINGS") if first]
        lists = dict.fromkeys(takes for _, takes in _calls("derive.masks", "FORMS") if takes)
        return [f"{word}=" for word in ("N", *symbols, *lists, *types, "mask")]
    if key == "mask":
        return [f"mask={name}" for name in masks()]
    if key in types:
        from derive.dtype import TYPES

        return [f"{key}={name}" for name in TYPES]
    return []


def masks() -> list[str]:
    """Names of the masks; ``-tl`` behind one is top-left where it needs no list."""
    forms = _texts("derive.masks", "FORMS")
    listed = {name for name, value in _table("derive.masks", "FORMS") if any(_keyword(value, "takes"))}
    top_left = [f"{name}-tl" for name in forms if name not in listed]
    return ["full", *forms, *top_left, *_texts("derive.masks", "SHARES")]


_OFFERED: dict[str, Words] = {
    "variant": _variants,
    "symbols": _keys,
    "schedule": _schedules,
    "machine": _machines,
    "name": _machines,  # of `derive machines`
}
"""By the name of an argument or option, what it is completed to."""


def _table(module: str, name: str) -> Iterator[tuple[str, ast.expr]]:
    """Keys and values of a table of constants, from the text of *module*."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(node.value, ast.Dict):
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Name) and target.id == name:
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                assert isinstance(key, ast.Constant)
                yield str(key.value), value


def _texts(module: str, name: str) -> list[str]:
    return [key for key, _ in _table(module, name)]


def _calls(module: str, name: str) -> Iterator[tuple[str, str]]:
    """Of every call in a table its first argument, where that is text, and its ``takes``."""
    for _, value in _table(module, name):
        for call in (node for node in ast.walk(value) if isinstance(node, ast.Call)):
            first = call.args[0] if call.args else None
            yield (
                str(first.value) if isinstance(first, ast.Constant) else "",
                next(_keyword(call, "takes"), ""),
            )


def _keyword(node: ast.AST, name: str) -> Iterator[str]:
    """Values of the keyword *name* in *node*."""
    found = (k for k in ast.walk(node) if isinstance(k, ast.keyword) and k.arg == name)
    return (str(k.value.value) for k in found if isinstance(k.value, ast.Constant))
