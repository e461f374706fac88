"""The screens: the session, its history, and those that explain."""
