pragma circom 2.1.0;

// A root of y^5 + 3 y = 252, nothing public: three constraints, a domain of exactly 4.
template NoPublic() {
    signal input y;
    signal y2;
    signal y4;
    y2 <== y * y;
    y4 <== y2 * y2;
    y4 * y === 252 - 3 * y;
}

component main = NoPublic();
