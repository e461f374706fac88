"""Textual themes as TOML."""
