"""Reads and changes single keys in the text of a configuration file. Pure.

It ensures that nothing else in the text changes, including comments and order, and that the new text is valid.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from grid.errors import ConfigError
from grid.node.config import parse_config, read_sections
from grid.node.known_keys import known_names, sections_with, unknown_keys

if TYPE_CHECKING:
    from configupdater import ConfigUpdater

MAX_VALUE = 4096


def split_name(name: str) -> tuple[str, str]:
    """Split `section.key`, or find the section of a key that only one section has; ConfigError, with a suggestion."""
    section, dot, key = name.partition(".")
    for known in ("storageclient.plugins.", "storageserver.plugins."):
        if name.startswith(known):
            plugin, dot, key = name.removeprefix(known).partition(".")
            section = known + plugin
    key = key.lower()
    if dot and key and unknown_keys(section, [key]) == []:
        return section, key
    key = name.lower()
    sections = sections_with(key)
    if len(sections) == 1:
        return sections[0], key
    if sections:
        raise ConfigError(
            f"several sections have a key {key}: write {' or '.join(f'{each}.{key}' for each in sections)}"
        )
    close = get_close_matches(name, known_names(), n=1, cutoff=0.5)
    meant = f"did you mean {close[0]}?" if close else "`grid config list --all` shows them"
    raise ConfigError(f"there is no key {name!r}; {meant}")


def values_in(text: str, file_name: str) -> dict[str, str]:
    """The keys set in the text, as `section.key` and in its order; ConfigError if the text is invalid."""
    sections = read_sections(text, file_name)
    return {f"{name}.{key}": value for name, values in sections.items() for key, value in values.items()}


def with_value(text: str, file_name: str, name: str, value: str | None) -> str:
    """The text with the key set to the value, or removed if that is None.

    ConfigError if there is no such key, if the result would be invalid, or if the text cannot be changed safely.
    """
    before = values_in(text, file_name)
    if value is None and name in before:
        key = name.removeprefix(section := _section_of(name, text, file_name)).removeprefix(".")
    else:
        section, key = split_name(name)
    if value is not None and (len(value) > MAX_VALUE or not value.isprintable()):
        raise ConfigError(f"a value is one line of at most {MAX_VALUE} printable characters")
    changed = _changed(text, file_name, section, key, None if value is None else value.replace("%", "%%"))
    parse_config(changed, file_name)
    after = values_in(changed, file_name)
    name = f"{section}.{key}"
    if {**before, name: None} != {**after, name: None} or after.get(name) != (None if value is None else value.strip()):
        raise ConfigError(f"{file_name} cannot be changed by this command: edit it by hand; the key may be there twice")
    return changed


def _section_of(name: str, text: str, file_name: str) -> str:
    """The section of a key in the text, whether known or not."""
    sections = read_sections(text, file_name)
    return next(section for section, values in sections.items() if any(f"{section}.{key}" == name for key in values))


def _changed(text: str, file_name: str, section: str, key: str, value: str | None) -> str:
    import configparser

    from configupdater import ConfigUpdater
    from configupdater.parser import InconsistentStateError

    updater = ConfigUpdater(strict=False, comment_prefixes=("#", ";"), inline_comment_prefixes=None)
    try:
        updater.read_string(text, file_name)
        _change(updater, section, key, value)
        return str(updater)
    except (configparser.Error, InconsistentStateError, ValueError):
        raise ConfigError(f"{file_name} cannot be changed by this command: edit it by hand") from None


def _change(updater: ConfigUpdater, section: str, key: str, value: str | None) -> None:
    if value is None:
        if updater.has_option(section, key):
            updater.remove_option(section, key)
    elif updater.has_option(section, key):
        updater.set(section, key, value)
    elif updater.has_section(section):
        options = list(updater[section].option_blocks())
        if options:  # Insert before trailing comments and blank lines, which belong to the next section.
            options[-1].add_after.option(key, value)
        else:
            updater.set(section, key, value)
    else:
        last = updater.last_block
        if last is not None and updater.sections():
            last.add_after.space()
        updater.add_section(section)
        updater.set(section, key, value)
