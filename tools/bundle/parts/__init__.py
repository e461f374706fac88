"""Text of ``model_new.py``: copied into bundles, never imported by stitch."""
