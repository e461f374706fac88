"""The thinking: who decides what.  Imports tools; never textual, torch or the UI."""
