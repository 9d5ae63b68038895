"""`grid completion`: prints shell code that completes commands, options, aliases and paths on the grid."""

from __future__ import annotations

import json
import os
import re

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

from grid.cli.terminal.invocation import COMPLETE_VARIABLE, examples, json_option

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' item kind value
    COMPREPLY=()
    compopt +o nospace
    while IFS=, read -r kind value; do
        [[ -n $kind ]] || continue
        case $kind in
            file|dir)
                while read -r item; do
                    [[ -d $item ]] && { item+=/; compopt -o nospace; }
                    COMPREPLY+=("$(printf %%q "$item")")
                done < <(compgen "-${kind:0:1}" -- "$value") ;;
            prefix) COMPREPLY+=("$value"); compopt -o nospace ;;
            *) COMPREPLY+=("$value") ;;
        esac
    done < <(COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" COMP_WORDBREAKS="$COMP_WORDBREAKS" \
%(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""
_ZSH = """\
#compdef %(prog_name)s
%(complete_func)s() {
    local -a plain prefixes
    local kind value
    (( ! $+commands[%(prog_name)s] )) && return 1
    [[ $PREFIX == --*=* ]] && compset -P 1 '*='
    while IFS=, read -r kind value; do
        [[ -n $kind ]] || continue
        case $kind in
            file) _path_files -f ;;
            dir) _path_files -/ ;;
            prefix) prefixes+=("$value") ;;
            *) plain+=("$value") ;;
        esac
    done < <(COMP_WORDS="${(j: :)${(@q)words}}" COMP_CWORD=$((CURRENT-1)) %(complete_var)s=zsh_complete %(prog_name)s 2>/dev/null)
    (( $#prefixes )) && compadd -S "" -i "$IPREFIX" -U -V prefixes -a prefixes
    (( $#plain )) && compadd -i "$IPREFIX" -U -V plain -a plain
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""
_FISH = """\
function %(complete_func)s
    set -l option (string match -r -- '^--[^=]+=' (commandline -ct))
    for line in (env COMP_WORDS=(commandline -cp | string collect) COMP_CWORD=(commandline -ct) \
%(complete_var)s=fish_complete %(prog_name)s 2>/dev/null)
        set -l item (string split -m 1 , -- $line)
        switch $item[1]
            case dir
                printf '%%s\\n' "$option"(__fish_complete_directories $item[2])
            case file
                printf '%%s\\n' "$option"(__fish_complete_path $item[2])
            case plain
                printf '%%s\\n' "$option$item[2]"
        end
    end
end
complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""
_SPECIAL = re.compile(r"([^\w@%+=:,./~-])")
"""Characters that bash requires quoting for."""


class GridBash(BashComplete):
    """Completion in bash.

    Because bash splits words at colons, we split the line ourselves and return only the last part.
    """

    source_template = _BASH

    @staticmethod
    def _check_version() -> None:
        """Skip click's check: an old bash lacks options that the code uses, but still completes."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, and the word at the cursor."""
        line = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])]
        words = split_arg_string(line)[1:]
        incomplete = words.pop() if words and not re.search(r"(?<!\\)\s$", line) else ""
        self._incomplete = incomplete
        return words, incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """One line: the kind, and the text that replaces the word as bash sees it."""
        value = str(item.value)
        if item.type in ("file", "dir"):
            return f"{item.type},{value}"
        if ":" in os.environ.get("COMP_WORDBREAKS", ":") and ":" in self._incomplete:
            value = value[self._incomplete.rindex(":") + 1 :]
        return f"{item.type},{_escaped(value)}"


class GridZsh(ZshComplete):
    """Completion in zsh, where a colon in a value must not start a description."""

    source_template = _ZSH

    def format_completion(self, item: CompletionItem) -> str:
        """One line with the kind, and one with the text."""
        return f"{item.type},{item.value}"


class GridFish(FishComplete):
    """Completion in fish, which adds no space after a colon or slash anyway."""

    source_template = _FISH

    def format_completion(self, item: CompletionItem) -> str:
        """One line, in the format of click's code for fish."""
        kind = "plain" if item.type == "prefix" else item.type
        return f"{kind},{item.value}\t{item.help}" if item.help else f"{kind},{item.value}"


_SHELLS: dict[str, type[ShellComplete]] = {"bash": GridBash, "zsh": GridZsh, "fish": GridFish}


def add_shells() -> None:
    """Register these classes with click."""
    for name, shell in _SHELLS.items():
        add_completion_class(shell, name)


def _escaped(value: str) -> str:
    return _SPECIAL.sub(r"\\\1", value)


@click.command(
    epilog=examples(
        'eval "$(grid completion bash)"           # in ~/.bashrc',
        'eval "$(grid completion zsh)"            # in ~/.zshrc, after compinit',
        "grid completion fish | source            # in ~/.config/fish/config.fish",
    )
)
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@json_option()
@click.pass_context
def completion(ctx: click.Context, *, shell: str, as_json: bool) -> int:
    """Print code that makes your shell complete commands, options, aliases, and paths on the grid.

    When you press Tab, paths are looked up on the grid, using the client directory that -d or GRID_NODE_DIR names.
    """
    made = _SHELLS[shell](ctx.find_root().command, {}, "grid", COMPLETE_VARIABLE)
    code = made.source()
    click.echo(json.dumps({"event": "completion", "shell": shell, "code": code}) if as_json else code)
    return 0
