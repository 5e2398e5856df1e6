pragma circom 2.1.0;

// Products and linear constraints mixed, so that the three levels of simplification (--O0, --O1,
// --O2) give three different systems with the same meaning.
template Mixed(n) {
    signal input x[n];
    signal input y;
    signal output product;
    signal output sum;
    signal copy[n];
    signal partial[n + 1];
    signal power[n + 1];

    partial[0] <== y;
    power[0] <== 1;
    for (var i = 0; i < n; i++) {
        copy[i] <== x[i];
        partial[i + 1] <== partial[i] + (i + 1) * copy[i];
        power[i + 1] <== power[i] * (copy[i] + partial[i]);
    }
    sum <== partial[n];
    product <== power[n] - sum;
}
