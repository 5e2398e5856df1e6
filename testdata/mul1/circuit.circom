pragma circom 2.1.0;

// One constraint and one public value.
template Mul1() {
    signal input a;
    signal input b;
    signal output c;
    c <== a * b;
}

component main = Mul1();
