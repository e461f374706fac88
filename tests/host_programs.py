"""Host programs as a Coder would write them, made from the one that stitch writes; its input is ``x``."""

STATE = "        self.known = self.graph = None\n"
GRAPHED = """
    @torch.no_grad()
    def forward(self, x):
        w, _, device = self._stitch.enter(self, {"x": x})
        known = [(weight.data_ptr(), stitch_version(weight)) for weight in w.values()]
        if device.type != "cuda":
            return self.eager(x)
        if known != self.known:
            self.known, self.graph = known, None
            return self.eager(x)
        if self.graph is None:
            self.capture(x)
        self.input.copy_(x)
        self.graph.replay()
        return self.output.clone()

    def capture(self, x):
        self.graph, self.input = torch.cuda.CUDAGraph(), torch.empty_like(x)
        torch.cuda.synchronize()
        with torch.cuda.graph(self.graph):
            self.output = self.eager(self.input)
"""


def graphed(own: str) -> str:
    """It replays a CUDA graph as long as the weights stay as they were at the call before."""
    eager = own.replace("def forward(self, x):", "def eager(self, x):").rstrip("\n")
    return f"{begun(eager, STATE)}\n{GRAPHED}"


def fallen_back(own: str, kernel_call: str, operators: str) -> str:
    """It calls a kernel and lets PyTorch compute what it returns."""
    assert own.count(kernel_call) == 1, own
    return own.replace(kernel_call, f"{kernel_call}\n        {operators}")


def misbehaving(own: str, kernel_call: str) -> dict[str, str]:
    """Host programs that keep the contract and do wrong, by what they do."""

    def behind(*lines: str, state: str = "") -> str:
        text = fallen_back(own, kernel_call, "\n        ".join(lines))
        return begun(text, f"        {state}\n") if state else text

    counted = "self.calls = 0"
    return {
        "hangs": behind("while True:", "    pass"),
        "hangs later": behind("self.calls += 1", "while self.calls > 5:", "    pass", state=counted),
        "writes over its input": behind("x.copy_(relu)"),
        "writes over a weight": behind('w["w"].copy_(relu[0])'),
        "returns the first call's": behind(
            *("self.kept = relu if self.kept is None else self.kept", "relu = self.kept"),
            state="self.kept = None",
        ),
        "returns the call's before": behind(
            "relu, self.kept = (relu if self.kept is None else self.kept), relu.clone()",
            state="self.kept = None",
        ),
        "is right the first time": behind(
            *("self.calls += 1", "if self.calls > 1:", "    relu = x"), state=counted
        ),
        "is right at every other call": behind(
            *("self.calls += 1", "if self.calls % 2 == 0:", "    relu = x"), state=counted
        ),
        "knows inputs by their address": behind(
            "known = (x.data_ptr(), stitch_version(x))",
            *("if known in self.kept:", "    relu = self.kept[known]", "self.kept[known] = relu.clone()"),
            state="self.kept = {}",
        ),
    }


def fallen_back_later(own: str, kernel_call: str, operators: str) -> str:
    """It takes the kernel's result at its first call alone."""
    later = f"if self.used:\n            {operators}\n        self.used = True"
    return begun(fallen_back(own, kernel_call, later), "        self.used = False\n")


def written_over(own: str) -> str:
    """It returns the same memory from every call."""
    head, _, result = own.rstrip("\n").rpartition("return ")
    kept = f"self.kept = {result}.clone() if self.kept is None else self.kept.copy_({result})"
    return begun(f"{head}{kept}\n        return self.kept\n", "        self.kept = None\n")


def begun(own: str, state: str) -> str:
    """With more statements in its ``__init__``."""
    head, init, rest = own.partition("        super().__init__(")
    line, _, body = rest.partition("\n")
    return f"{head}{init}{line}\n{state}{body}"
