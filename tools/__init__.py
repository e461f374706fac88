"""The doing: each module wraps one real thing and knows nothing of agents."""
