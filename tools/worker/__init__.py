"""Processes that run foreign code, under the user's interpreter: standard library and torch only.

Started by path through ``boot.py``, which makes this folder the package ``stitch_worker`` so that its
modules can neither shadow nor be shadowed by the user's.  Inside the folder imports are relative.
"""
