"""Hand-written passes, and why this study has its own: a thousand points of one grid, trained side by side.

Everything else in the package trains with `quasiratio.training`. Here a point is a tiny network on batches of 256
events, a thousand of them share one data set, and each stops when its own patience runs out. So the passes are written
out without a graph, signs and weights are kept as two numbers and a bit per event, and the stack is rebuilt when points
stop: where NumPy's products use AVX-512, 16 times faster than one network after another on tensors in memory, 50 times
faster than with a `DataLoader` (`benchmarks/weight_variance_speed.py`). Tests compare the passes with automatic
differentiation.

- `perceptron_pass`: forward and backward passes of many small perceptrons.
- `stack_training`: all points in one step, each to its own early stop.
- `signed_events`: the shared events with the signs and weights of every point.
- `classifier_problem`, `sub_ratio_problem`, `mixture_problem`: what is minimised; the MLP, the parts of RoSMM, and
  RoSMM_r.
"""
