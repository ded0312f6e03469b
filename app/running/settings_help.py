"""The help of commands that read settings."""

from typing import Any

from typer.core import TyperCommand
from typing_extensions import override


class WithSettings(TyperCommand):
    """A command whose help lists all settings."""

    @override
    def format_help(self, *arguments: Any) -> None:
        self.epilog = _settings_help()
        super().format_help(*arguments)


def _settings_help() -> str:
    from app.settings import ENV_PREFIX, Settings  # noqa: PLC0415 - commands start without it

    lines = ["Each setting is an environment variable. Times are in seconds, sizes in bytes."]
    for name, field in Settings.model_fields.items():
        default = ",".join(field.default) if isinstance(field.default, tuple) else field.default
        shown = "" if default in (None, "") else f" (default: {default})"  # brackets would be read as markup
        lines.append(f"{ENV_PREFIX}{name.upper()}{shown}: {field.description}")
    return "\n\n".join(lines)
