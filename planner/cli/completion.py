"""completion: the few lines of shell that call mergeplan itself for completions."""

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

PROGRAM = "mergeplan"
SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command()
@click.argument("shell", type=click.Choice([*SHELLS]))
def completion(shell: str) -> int:
    """Print the script with which SHELL completes commands and options.

    \b
    eval "$(mergeplan completion bash)"    in ~/.bashrc
    eval "$(mergeplan completion zsh)"     in ~/.zshrc
    mergeplan completion fish > ~/.config/fish/completions/mergeplan.fish
    """
    generator = SHELLS[shell](click.Group(), {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE")
    click.echo(generator.source_template % generator.source_vars())
    return 0
