"""numpy's OpenBLAS: float32 products. The thread count is that of the environment (OPENBLAS_NUM_THREADS)."""
from pipe import repeated, serve

import numpy as np

rng = np.random.default_rng(1)


def measure(point):
    m, n, k = point["m"], point["n"], point["k"]
    if point["op"] == "forward":
        a, b, shape = rng.standard_normal((m, k), np.float32), rng.standard_normal((n, k), np.float32).T, (m, n)
    else:
        a, b, shape = rng.standard_normal((m, n), np.float32), rng.standard_normal((n, k), np.float32), (m, k)
    out = np.empty(shape, np.float32)
    return {"gflops": 2 * m * n * k / repeated(lambda: np.matmul(a, b, out=out)) / 1e9}


serve(measure, numpy=np.__version__)
