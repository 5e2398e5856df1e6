pragma circom 2.1.0;

// A hundred public inputs against a handful of private ones.
template Dot(n) {
    signal input x[n];
    signal input key;
    signal output dot;
    signal power[n];
    signal acc[n + 1];
    acc[0] <== 0;
    power[0] <== key;
    for (var i = 1; i < n; i++) {
        power[i] <== power[i - 1] * key;
    }
    for (var i = 0; i < n; i++) {
        acc[i + 1] <== acc[i] + x[i] * power[i];
    }
    dot <== acc[n];
}

component main {public [x]} = Dot(99);
