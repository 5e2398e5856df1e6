pragma circom 2.1.0;

// Few constraints, many wires: rows of 300 terms, and far more points than rows. Wire numbers
// beyond 255 do not stand in order within a row of the .r1cs file.
template Wide(n) {
    signal input x[n];
    signal output y;
    signal output z;
    var sum = 0;
    var alternating = 0;
    for (var i = 0; i < n; i++) {
        sum += (i + 1) * x[i];
        alternating += (i % 2 == 0) ? x[i] : -x[i];
    }
    signal square;
    square <== sum * sum;
    y <== square * alternating;
    z <== sum - alternating;
}

component main = Wide(300);
