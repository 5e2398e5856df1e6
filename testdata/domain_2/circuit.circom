pragma circom 2.1.0;

// Factors of a constant; nothing public. One constraint and the constant one: a domain of 2.
template Factors() {
    signal input p;
    signal input q;
    p * q === 29996181669529;
}

component main = Factors();
