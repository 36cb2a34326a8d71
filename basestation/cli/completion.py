"""`moteloom completion`: prints the file with which a shell completes verbs, options and their values."""

import argparse
from dataclasses import dataclass
from importlib.metadata import entry_points

HELP = "print the file with which bash, zsh or fish completes this command"
EXAMPLE = "moteloom completion bash > ~/.local/share/bash-completion/completions/moteloom"
SHELLS = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = f"""where the file goes:
  bash  ~/.local/share/bash-completion/completions/moteloom
  zsh   _moteloom in a folder of $fpath
  fish  ~/.config/fish/completions/moteloom.fish

example:
  {EXAMPLE}"""
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads the file")


def run(args: argparse.Namespace) -> int:
    """Print the file; the exit code."""
    commands = list_commands()
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](commands), end="")
    return 0


@dataclass(frozen=True, slots=True)
class CommandWords:
    """A verb, or a verb of a verb: the words and options that can follow it, each with its help."""

    path: str
    """Such as `moteloom query submit`."""
    words: dict[str, str]
    options: dict[str, str]
    values: dict[str, tuple[str, ...]]
    """Of options that take one of some words."""


def list_commands() -> list[CommandWords]:
    """All commands, from the parsers of the verbs."""
    from gateway.cli import VERBS, help_line, parser_of

    entries = sorted(entry_points(group=VERBS), key=lambda entry: entry.name)
    found = [
        CommandWords(
            "moteloom", {entry.name: help_line(entry) for entry in entries}, {"--help": "", "--version": ""}, {}
        )
    ]
    for entry in entries:
        found += _commands_of(f"moteloom {entry.name}", parser_of(entry.name, entry.load()))
    return found


def _commands_of(path: str, parser: argparse.ArgumentParser) -> list[CommandWords]:
    words: dict[str, str] = {}
    options: dict[str, str] = {}
    values: dict[str, tuple[str, ...]] = {}
    below: list[CommandWords] = []
    for action in parser._actions:  # argparse has no other list of them
        if isinstance(action, argparse._SubParsersAction):
            helps = {each.dest: each.help or "" for each in action._choices_actions}
            words |= {name: helps.get(name, "") for name in action.choices}
            for name, inner in action.choices.items():
                below += _commands_of(f"{path} {name}", inner)
            continue
        for option in action.option_strings:
            options[option] = action.help or ""
            if action.choices is not None:
                values[option] = tuple(map(str, action.choices))
        if not action.option_strings and action.choices is not None:
            words |= dict.fromkeys(map(str, action.choices), "")
    return [CommandWords(path, words, options, values), *below]


# The variable is not `path`, which zsh ties to PATH.
_WALK = """    {declare}
    for ((i = {first}; i < {current}; i++)); do
        case "$place ${{{array}[i]}}" in
            {paths}) place="$place ${{{array}[i]}}" ;;
        esac
    done
"""


def _cases(commands: list[CommandWords]) -> tuple[str, str, str]:
    """Patterns of all paths, and the cases of values and of words."""
    paths = " | ".join(f'"{each.path}"' for each in commands[1:])
    values = [(f"{each.path} {option}", words) for each in commands for option, words in each.values.items()]
    of_values = "".join(f'        "{place}") words="{" ".join(words)}" ;;\n' for place, words in values)
    of_words = "".join(
        f'        "{each.path}") words="{" ".join((*each.words, *each.options))}" ;;\n' for each in commands
    )
    return paths, of_values, of_words


def _bash(commands: list[CommandWords]) -> str:
    paths, of_values, of_words = _cases(commands)
    declare = "local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} place=moteloom words= i"
    walk = _WALK.format(declare=declare, first=1, current="COMP_CWORD", array="COMP_WORDS", paths=paths)
    return f"""# bash completion of moteloom, made by `moteloom completion bash`
_moteloom() {{
{walk}    case "$place $before" in
{of_values}        *) case "$place" in
{of_words}        esac ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _moteloom moteloom
"""


def _zsh(commands: list[CommandWords]) -> str:
    paths, of_values, of_words = _cases(commands)
    declare = "local before=${words[CURRENT-1]} place=moteloom found= i"
    walk = _WALK.format(declare=declare, first=2, current="CURRENT", array="words", paths=paths)
    cases = f"""    case "$place $before" in
{of_values}        *) case "$place" in
{of_words}        esac ;;
    esac
""".replace('words="', 'found="')
    return f"""#compdef moteloom
# zsh completion of moteloom, made by `moteloom completion zsh`
_moteloom() {{
{walk}{cases}    compadd -- ${{=found}} || _files
}}
if [ "$funcstack[1]" = "_moteloom" ]; then _moteloom "$@"; else compdef _moteloom moteloom; fi
"""


def _fish(commands: list[CommandWords]) -> str:
    lines = ["# fish completion of moteloom, made by `moteloom completion fish`"]
    names = {each.path for each in commands}
    for command in commands:
        verbs = command.path.split()[1:]
        seen = "; and ".join(f"__fish_seen_subcommand_from {verb}" for verb in verbs) or "__fish_use_subcommand"
        below = [word for word in command.words if f"{command.path} {word}" in names]
        if verbs and below:
            seen += f"; and not __fish_seen_subcommand_from {' '.join(below)}"
        for word, help in command.words.items():
            lines.append(f"complete -c moteloom -n '{seen}' -f -a {word}{_described(help)}")
        for option, help in command.options.items():
            kind = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            words = f" -x -a '{' '.join(command.values[option])}'" if option in command.values else ""
            lines.append(f"complete -c moteloom -n '{seen}' {kind}{words}{_described(help)}")
    return "\n".join(lines) + "\n"


def _described(help: str) -> str:
    text = " ".join(help.replace("%(default)s", "…").replace("%%", "%").split()).replace("\\", "").replace("'", "")
    return f" -d '{text}'" if text else ""
