"""URLs that a person sets, checked where they are read."""

from urllib.parse import urlsplit

WEB = ("http", "https")
PROXIES = (*WEB, "socks5", "socks5h")


def endpoint(text: str) -> str:
    """`text`, when it is empty or the URL of a server of models.

    Raises:
        ValueError: it is neither, with what it should be.
    """
    return _url(text, WEB, "http://127.0.0.1:8080/v1")


def proxy(text: str) -> str:
    """`text`, when it is empty or the URL of a proxy.

    Raises:
        ValueError: it is neither, with what it should be.
    """
    return _url(text, PROXIES, "http://proxy.example:3128")


def _url(text: str, schemes: tuple[str, ...], example: str) -> str:
    if not text:
        return text
    try:
        parts = urlsplit(text)
        sound = parts.scheme in schemes and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:  # no number where the port stands, half an address in brackets
        sound = False
    if not sound or any(c.isspace() or not c.isprintable() for c in text):
        raise ValueError(f"it should be a URL with {' or '.join(schemes[:2])} and a host, such as {example}")
    return text
