"""Profiles of kernels (Nsight Compute) and of programs (Nsight Systems, CUPTI): measured, read, summed up."""
