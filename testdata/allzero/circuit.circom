pragma circom 2.1.0;

// With all inputs zero every wire but the constant one is zero.
template Products(n) {
    signal input x[n];
    signal output sum;
    signal acc[n];
    acc[0] <== x[0] * x[0];
    for (var i = 1; i < n; i++) {
        acc[i] <== x[i] * (x[i - 1] + 7 * x[i]) + acc[i - 1];
    }
    sum <== acc[n - 1];
}

component main = Products(60);
