"""What the session screen shows, as data and text; no Textual, so it is tested without a screen."""
