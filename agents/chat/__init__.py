"""Talking to an OpenAI-compatible endpoint: client, stream, failures, and what an answer holds."""
