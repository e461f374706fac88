"""The parts of the screens: each draws what it is given and posts what was asked of it."""
