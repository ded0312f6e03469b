"""The command `completion`, which prints completion scripts."""

from enum import StrEnum
from typing import Annotated, Final

import typer

from jobgate.cli.printing import say


class Shell(StrEnum):
    """Shells whose completion is known."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


# The scripts ask `jobgate` itself for the words, under the protocol of typer.
_SCRIPTS: Final = {
    Shell.BASH: """\
_jobgate_completion() {
    local IFS=$'\\n'
    COMPREPLY=( $( env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \\
                   _JOBGATE_COMPLETE=complete_bash $1 ) )
    return 0
}
complete -o default -F _jobgate_completion jobgate
""",
    Shell.ZSH: """\
#compdef jobgate
_jobgate_completion() {
    eval $(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _JOBGATE_COMPLETE=complete_zsh jobgate)
}
compdef _jobgate_completion jobgate
""",
    Shell.FISH: """\
complete --command jobgate --no-files --arguments "(env _JOBGATE_COMPLETE=complete_fish \
_TYPER_COMPLETE_FISH_ACTION=get-args _TYPER_COMPLETE_ARGS=(commandline -cp) jobgate)" \
--condition "env _JOBGATE_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=is-args \
_TYPER_COMPLETE_ARGS=(commandline -cp) jobgate"
""",
}


def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print the completion script of a shell.

    Examples: source <(jobgate completion bash); jobgate completion fish | source
    """
    say(_SCRIPTS[shell].rstrip("\n"))
