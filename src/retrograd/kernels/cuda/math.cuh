// Functions of the generated kernels. F is the dtype in which a kernel computes, float or double.
#define INFINITE F(__longlong_as_double(0x7ff0000000000000LL))

__device__ inline F maximum(F x, F y) { return x >= y || x != x ? x : y; }
__device__ inline F minimum(F x, F y) { return x <= y || x != x ? x : y; }
__device__ inline F sign_of(F x) { return x > F(0) ? F(1) : x < F(0) ? F(-1) : x - x; }
__device__ inline F decay(F x) { return exp(x); }
__device__ inline F decay_less_one(F x) { return expm1(x); }
__device__ inline F normal_cdf(F x) { return F(0.5) * erfc(x * F(-0.70710678118654752440)); }
__device__ inline F sigmoid(F x) { return F(1) / (F(1) + exp(-x)); }
__device__ inline F xlogy(F x, F y) { return x == F(0) && y == y ? F(0) : x * log(y); }
__device__ inline F logaddexp(F x, F y) {
    return x == y ? x + F(0.69314718055994530942) : maximum(x, y) + log1p(exp(-abs(x - y)));
}
// An index is taken modulo the size, as CuPy does: what is read is always part of the array.
__device__ inline long long within(long long index, long long size) { return (index % size + size) % size; }
