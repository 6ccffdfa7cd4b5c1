"""Thresholds by which kernels choose among their variants: one table, with the measurement that each value rests on.

A threshold is a number of elements of the operand that the kernel measures, usually the first, unless its comment names
another quantity. Times are of float32 arrays with NumPy 2.4 on a core of an Intel Xeon (AVX-512) that other programs
shared, and of loops on one thread. A comment without a time keeps the reason for which the value was chosen.
"""

from __future__ import annotations

# -- Small arrays: products with tables instead of NumPy's reductions and broadcasting ------------------------------

#: At most so many elements: products and cached tables against NumPy. softmax of 32 x 16: 2.2 against 6.0 µs; of 64 x 16:
#: 2.7 against 7.3.
SMALL = 1024
#: Longest row of a small array: the product with a square matrix of ones costs its length for each element. Sums of 8 rows
#: at every place, of 16 elements: 0.3 against 0.7 µs; of 64: 0.7 against 0.8.
SMALL_ROW = 16
#: At most so many elements: Python's sum of a list of the elements, in double precision, against a product with ones
#: whose result becomes an array. 8: 0.32 against 0.44 µs; 16: 0.39 against 0.45.
PYTHON_SUM = 16
#: At most so many elements: the sum as a product with ones against ``numpy.add.reduce``: 0.3 against 0.9 µs
#: (AMD EPYC); here 0.5 against 0.5 for 64 elements.
ONES_PRODUCT = 64
#: At most so many elements of a matrix: its sums as a product with ones. 64 x 64: 0.7 against 2.0 µs for rows, 1.6 for
#: columns.
ONES_MATRIX = 4096
#: At most so many elements: gather by cached flat positions against an index tuple. 8 x 32: 1.2 against 3.1 µs;
#: 32 x 32: 1.8 against 5.2.
FLAT_POSITIONS = 1024
#: At most so many entries of the table of a small convolution (weights times outputs), which is kept.
WINDOW_TABLE = 1 << 14

# -- Numba: a compiled loop on all threads against NumPy ------------------------------------------------------------

#: At least so many elements: Numba loops. A sum of two arrays takes as long in NumPy (4 to 8 µs, the loop 6), silu 37 µs,
#: the loop 26. A program with smaller arrays does not load the compiler (0.3 s). ``core/accumulate.py`` has the same number.
LARGE = 1 << 15
#: The same for functions that SciPy computes element by element, erf and gelu: 10⁴ elements of gelu take 120 µs, the loop 14.
LARGE_ERF = 1 << 13
#: The same for functions that take one of two values: ``numpy.where`` has a branch for each element, which the processor
#: cannot predict for a random condition. 16384 elements: 89 µs, bitwise operations on the elements 11, the loop 2.5.
BRANCHES = 1 << 12
#: The same for sums of elements or rows at given places, which NumPy computes one by one or after sorting the places. 64
#: rows of 16: 10 µs, the loop 1.3; 512 rows of 32: 138 µs, the loop 4.2.
ADDED = 1 << 10
#: Most elements of rows that NumPy adds at given places one by one, not after sorting the places. 64 rows of 16: 10
#: against 19 µs; 512 rows of 32: 138 against 128.
ADDED_ONE_BY_ONE = 1 << 12
#: At least so many random words are drawn by the loop: dropout of 12,800 elements (25,600 words) 179 µs, the loop 41.
DRAWN = 1 << 12
#: Below so many elements Numba's own thread pool (workqueue) takes longer to wake up than to do the work.
WAKE_WORKQUEUE = 1 << 18
#: At least so many elements: the maximum of all by several threads. On one thread NumPy, which runs many lanes side by
#: side, is faster: 15 against 25 µs for 2**18.
LARGE_MAXIMUM = 1 << 18
#: Row length from which on the sum of fewer than ``FEW_ROWS`` rows uses all threads for each row.
LONG_ROW = 1 << 16
#: With fewer rows a loop over rows leaves threads without work.
FEW_ROWS = 8
#: Columns (outer times inner) from which on the loop finds maxima along another axis sooner than NumPy. 256 rows of
#: 1024 columns on one thread: 52 against 22 µs; of 4096: 212 against 218.
MAXIMUM_COLUMNS = 2048
#: Size of the inner axes from which on the loop finds the index of the maximum sooner than NumPy's argmax. 256 rows
#: of 512: 28 against 173 µs.
ARGMAX_COLUMNS = 512
#: Shortest row (or inner axis) for which a loop over rows is worth its own call in broadcasting and normalization.
LOOP_ROW = 16
#: Rows, and elements of a row, from which on the loop may take rows sooner than ``numpy.take``.
TAKE_ROWS, TAKE_WIDTH = 512, 16

#: Elements of the state of a recurrent layer from which on a loop computes one time step. LSTM of 16 x 64: 8 against
#: 21 µs, and backward 7 against 42.
RECURRENT = 16
#: Elements from which on a loop uses all threads. GRU of 64 x 128: 20 µs on one thread, 18 on two.
THREADED_LOOP = 1 << 13

# -- Threads of NumPy, where Numba does not support the arrays or is missing ----------------------------------------

#: At least so many elements: an elementwise formula in slices on all threads. Waking a thread takes as long as half a
#: million additions, and a formula of several steps also profits from the cache. silu of 2**19: 630 against 735 µs.
THREADED_FORMULA = 1 << 19
#: At least so many elements: a single ufunc in as many slices as there are threads.
THREADED_UFUNC = 1 << 20

# -- Matrix products -------------------------------------------------------------------------------------------------

#: Elements of both matrices from which on their product is passed to ``kernels.matmul.product``. Smaller products go to
#: BLAS without its checks. 32 x 32: 0.7 against 1.1 µs; 64 x 64: 3.5 against 6.3.
PRODUCT = 3 << 12
#: Range of the number of rows of the float32 matrix ``a``, and minimum number of multiplications, for which ``a @ b.T`` is
#: computed as ``(b @ a.T).T``: OpenBLAS packs a transposed second operand slowly. 8 rows by 512 x 512: 56 against 103 µs,
#: 32 rows by 784 x 256: 92 against 132, 4 rows by 1024 x 1024: 345 against 685 (Intel, AVX-512); with OpenBLAS's kernels
#: for Haswell and Zen 0.9 to 1.3 times as fast. 64 rows: 0.7 to 1.2 times.
TRANSPOSED_ROWS, TRANSPOSED_WORK = (4, 32), 300_000
#: Multiplications from which on OpenBLAS would use several threads.
BLAS_THREADS = 1 << 18
#: Multiplications up to which one thread is as fast as two running threads, and three times as fast as two of which one
#: has to wake up.
SINGLE_THREAD = 1 << 20
#: ``BLAS_THREADS`` while no Numba loop has run: smaller products do not load Numba.
BLAS_THREADS_WITHOUT_NUMBA = 1 << 24

# -- Blocks that stay in the cache -----------------------------------------------------------------------------------

#: At most so many elements: a normalization in one piece; larger arrays are sliced, so that temporary arrays stay in the
#: second-level cache.
CACHED_PIECE = 1 << 16

# -- Sorting, scans, interpolation -----------------------------------------------------------------------------------

#: At least so many elements: stable sort of keys with indices against ``argsort``. 1024: both 15 µs; 2048: 22
#: against 53.
KEY_SORT = 2048
#: Largest ``count`` for which topk selects elements instead of sorting the rows.
SELECTED = 128
#: Passes over all elements (repeated ``argmax``) that take as long as sorting them.
ARGMAX_PASSES = 16
#: Steps of a recurrence up to which one step after the other is faster than log2(steps) passes over all elements.
#: 4 rows of 8: 17 against 19 µs; of 24: 28 against 25; of 64: 57 against 30.
SERIAL_STEPS = 24
#: Elements of one step from which on one step after the other is always faster.
SERIAL_WIDTH = 256
#: Taps from which on interpolation multiplies by the dense matrix.
DENSE_TAPS = 8

#: Entries of a table of counts for each counted integer: more entries take longer to clear and sum than sorting.
SPARSE_COUNTS = 4

# -- Convolution -----------------------------------------------------------------------------------------------------

#: At least so many elements: Numba loops. 32 to 32 channels, 3 x 3, 8 images of 8 x 8: 173 against 273 µs.
CONVOLVED = 1 << 9
#: Elements of a kernel per group, and outputs per group, up to which tiles of registers cost more than they save.
DIRECT_KERNEL, DIRECT_OUTPUTS = 32, 4
#: Outputs per group up to which tiles are never worth it.
NARROW_OUTPUTS = 2

# -- Linear algebra --------------------------------------------------------------------------------------------------

#: Rows of a matrix from which on a batch goes to LAPACK directly; NumPy loops over smaller matrices without calls.
LAPACK_ROWS = 32
#: Rows of a system, and columns for each thread, from which on its right-hand sides are distributed over threads.
SOLVE_ROWS, SOLVE_COLUMNS = 192, 64
#: Elements of a matrix from which on SciPy's BLAS would wake its threads.
LAPACK_THREADS = 1024
