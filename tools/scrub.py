"""The environment that the user's own code gets: what it needs to run, and no secrets."""

import os
import re
from collections.abc import Mapping

from stitch_tui.tools.redaction import without_secrets

_KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TERM|TMPDIR|TMP|TEMP|XDG_\w+|LD_LIBRARY_PATH|LIBRARY_PATH"
    r"|CPATH|CC|CXX|VIRTUAL_ENV|CONDA_\w+|PYTHONPATH|PYTHONHASHSEED|PYTHONUSERBASE"
    r"|CUDA_\w+|NVIDIA_\w+|CUBLAS_\w+|CUDNN_\w+|NCCL_\w+|TORCH\w*|PYTORCH_\w+|TRITON_\w+"
    r"|HF_\w+|HUGGINGFACE_\w+|TRANSFORMERS_\w+|TIMM_\w+"
    r"|OMP_\w+|MKL_\w+|OPENBLAS_\w+|KMP_\w+|GOMP_\w+|NUMEXPR_\w+"
    r"|https?_proxy|no_proxy|HTTPS?_PROXY|NO_PROXY|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|(^|_)(PAT|AUTH)(_|$)", re.IGNORECASE)


def reference_environment(
    declared: Mapping[str, str] | None = None, *, inherited: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables that a reference's process starts with.

    Search paths, caches of Hugging Face and torch, CUDA, thread counts and proxies are inherited;
    names that sound like secrets are dropped even among those, and so is every variable that holds a secret
    of this process, whatever its name.  `declared` variables pass as they are.
    Nothing is written beside the user's sources (``PYTHONDONTWRITEBYTECODE``).

    Args:
        declared: what the user named in the configuration.
        inherited: default: this process's environment.
    """
    source = without_secrets(os.environ if inherited is None else inherited)
    kept = {
        name: value for name, value in source.items() if _KEPT.fullmatch(name) and not _SECRET.search(name)
    }
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **(declared or {})}
