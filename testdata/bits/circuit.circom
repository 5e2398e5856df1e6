pragma circom 2.1.0;

// The bits of a number below 2^n; bit 0 first.
template Bits(n) {
    signal input in;
    signal output bit[n];
    var sum = 0;
    var weight = 1;
    for (var i = 0; i < n; i++) {
        bit[i] <-- (in >> i) & 1;
        bit[i] * (bit[i] - 1) === 0;
        sum += bit[i] * weight;
        weight += weight;
    }
    sum === in;
}

// Exclusive or and conjunction of two n-bit numbers: nearly every wire is 0 or 1.
template Logic(n) {
    signal input a;
    signal input b;
    signal output xor;
    signal output and;
    component bits_a = Bits(n);
    component bits_b = Bits(n);
    bits_a.in <== a;
    bits_b.in <== b;
    signal both[n];
    var sum_xor = 0;
    var sum_and = 0;
    for (var i = 0; i < n; i++) {
        both[i] <== bits_a.bit[i] * bits_b.bit[i];
        sum_xor += (bits_a.bit[i] + bits_b.bit[i] - 2 * both[i]) * 2 ** i;
        sum_and += both[i] * 2 ** i;
    }
    xor <== sum_xor;
    and <== sum_and;
}

component main = Logic(128);
