"""SQL analytics for LLM profiler traces: forward passes, layers and kernels."""

__version__ = "0.1.0"
