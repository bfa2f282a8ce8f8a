"""Settings: flags > environment ``CRASHPATH_*`` > ``crashpath.toml`` (working folder, then user) > defaults."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from crashpath.ingest.web_address import checked

FILE_NAME = "crashpath.toml"


class SettingsError(Exception):
    """A setting cannot be used; the message names it, where it came from where that is known, and the remedy."""


class Settings(BaseSettings):
    """Everything that a person may set, with the defaults that hold when nobody does."""

    model_config = SettingsConfigDict(env_prefix="CRASHPATH_", extra="forbid", frozen=True, hide_input_in_errors=True)

    db: str = Field(default="sqlite:///crashpath.db", description="the store, as an SQLAlchemy URL")
    tz: str = Field(default="UTC", description="zone of stamps that name none")
    max_quarantine: float = Field(default=0.01, ge=0, le=1, description="share above which a night is partial")
    examples: int = Field(default=20, ge=0, description="texts kept a signature and release")
    patterns: tuple[str, ...] = Field(
        default=("logs/{release}/{platform}/*",), description="path patterns that tell a log's facts"
    )
    exclude: tuple[str, ...] = Field(default=(), description="globs of files that are not read")
    encoder: str = Field(default="minilm", description="minilm, or a sentence-transformers model by name or path")
    policy: str | None = Field(default=None, description="the policy file of reviews; without one, policy.toml here")
    read_only: bool = Field(default=False, description="the dashboard shows, and nothing can be decided in it")
    lease_wait: float = Field(default=0.0, ge=0, description="seconds to wait for a night that is running")

    webhook: SecretStr | None = Field(default=None, description="address that a digest is posted to; a secret")
    webhook_form: Literal["json", "slack"] = Field(default="json", description="form of what is posted")
    webhook_most: int = Field(default=20, ge=1, le=100, description="things listed in a message; the rest is counted")
    webhook_every: float = Field(default=60.0, ge=0, description="seconds at least between two messages of a store")
    webhook_timeout: float = Field(default=10.0, gt=0, le=300, description="seconds to wait for the webhook's answer")
    spike_min: int = Field(default=10, ge=1, description="fewest crashes a day that are called a spike")
    spike_days: int = Field(default=28, ge=7, le=365, description="days that a day is compared with")
    spike_alpha: float = Field(default=0.01, gt=0, lt=0.5, description="chance a night of a false spike, or silence")
    quiet_days: int = Field(default=30, ge=2, le=365, description="days of silence after which a cluster is back")

    @field_validator("webhook", mode="after")
    @classmethod
    def _postable(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None or not value.get_secret_value():
            return None
        checked(value.get_secret_value())
        return value

    @field_validator("tz")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (KeyError, ValueError, OSError) as error:
            raise ValueError(f"{value!r} is no time zone; use a name such as UTC or Europe/Berlin") from error
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, then environment, then the settings files; neither .env files nor secret folders are read."""
        files = tuple(TomlConfigSettingsSource(settings_cls, path) for path in config_files())
        return (init_settings, env_settings, *files)


def config_files() -> tuple[Path, ...]:
    """The settings files that exist, the stronger one first."""
    user = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "crashpath" / FILE_NAME
    return tuple(path for path in (Path(FILE_NAME), user) if path.is_file())


def load_settings(**flags: Any) -> Settings:
    """Return the settings in force; flags that are ``None`` were not given.

    Raises:
        SettingsError: a value or a file cannot be used.
    """
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"]) or "settings"
        reason = first["msg"].removeprefix("Value error, ")
        raise SettingsError(f"Setting {name} cannot be used: {reason}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(f"{FILE_NAME} cannot be read: {error}. Mend it or move it away.") from error
