"""PTX to C++: nvcc's output, or inline PTX, as code that the emulator's runtime runs.

Every PTX register is an unsigned integer local; typed operations bit-cast.  Memory operations go through
helpers of ``ptx_rt.h`` that know the ``.cu`` line, so checking needs no help from the host compiler.
"""
