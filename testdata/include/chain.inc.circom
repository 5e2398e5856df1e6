pragma circom 2.1.0;

// A chain of n multiplications in which every value is as large as the field:
//     s_(i+1) = (s_i + key) (s_i - i)
template Chain(n) {
    signal input start;
    signal input key;
    signal output end;
    signal s[n + 1];
    s[0] <== start;
    for (var i = 0; i < n; i++) {
        s[i + 1] <== (s[i] + key) * (s[i] - i);
    }
    end <== s[n];
}
