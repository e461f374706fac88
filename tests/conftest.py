"""Property tests are deterministic and have no deadline: the machine may be busy."""

from hypothesis import settings

settings.register_profile("stitch", deadline=None, derandomize=True)
settings.load_profile("stitch")
