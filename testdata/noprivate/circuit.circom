pragma circom 2.1.0;

// Every wire is public: the key's C list is empty.
template Public() {
    signal input a;
    signal input b;
    signal output c;
    c <== a * b;
}

component main {public [a, b]} = Public();
