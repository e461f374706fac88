"""The built-in Planner and Coder: deterministic, no model, no network."""
